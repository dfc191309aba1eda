// If a part of the page cannot be drawn, the rest of the page stays.
import { Component, type ComponentChildren } from 'preact';
import { t } from '../language/language.js';

interface Props {
  // Names the part in the error message.
  readonly name: string;
  readonly children: ComponentChildren;
}

export class Boundary extends Component<Props, { readonly failed: string | null }> {
  override state = { failed: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ failed: error instanceof Error ? error.message : String(error) });
  }

  override render({ name, children }: Props): ComponentChildren {
    return this.state.failed === null ? children : <p class="bad">{t.undrawable(name, this.state.failed)}</p>;
  }
}
