// How text looks on this terminal: colour or not, and how wide. Without colour no escape is ever made.
import { styleText } from 'node:util';

export interface Style {
  readonly colour: boolean;
  // Columns; Infinity where nothing is to be wrapped or cut.
  readonly width: number;
}

export type Ink = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

// The caller has looked at the stream and at NO_COLOR; Node must not look again.
const ASKED_BEFORE = { validateStream: false };

export function paint(style: Pick<Style, 'colour'>, ink: Ink, text: string): string {
  return style.colour && text !== '' ? styleText(ink, text, ASKED_BEFORE) : text;
}
