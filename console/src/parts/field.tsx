// A form field with its label, hint and problem, linked to each other for screen readers.
import type { ComponentChildren, JSX } from 'preact';

interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly problem?: string | undefined;
  readonly children: (ties: {
    readonly id: string;
    readonly 'aria-describedby': string | undefined;
    readonly 'aria-invalid': boolean;
  }) => ComponentChildren;
}

export function Field({ name, label, hint, problem, children }: FieldProps): JSX.Element {
  const described = [
    ...(hint === undefined ? [] : [`hint-${name}`]),
    ...(problem === undefined ? [] : [`problem-${name}`]),
  ].join(' ');
  return (
    <div class="field">
      <label for={`field-${name}`}>{label}</label>
      {children({
        id: `field-${name}`,
        'aria-describedby': described === '' ? undefined : described,
        'aria-invalid': problem !== undefined,
      })}
      {problem !== undefined && (
        <p id={`problem-${name}`} class="bad">
          {problem}
        </p>
      )}
      {hint !== undefined && (
        <p id={`hint-${name}`} class="dim">
          {hint}
        </p>
      )}
    </div>
  );
}
