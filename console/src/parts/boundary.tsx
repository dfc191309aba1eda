// A part that cannot be drawn takes nothing else with it.
import { Component, type ComponentChildren } from 'preact';

interface Props {
  // What it was, for whoever reads it.
  readonly name: string;
  readonly children: ComponentChildren;
}

export class Boundary extends Component<Props, { readonly failed: string | null }> {
  override state = { failed: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ failed: error instanceof Error ? error.message : String(error) });
  }

  override render({ name, children }: Props): ComponentChildren {
    return this.state.failed === null ? (
      children
    ) : (
      <p class="bad">
        {name} cannot be shown here ({this.state.failed}); the command line shows it.
      </p>
    );
  }
}
