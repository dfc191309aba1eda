// The style of terminal text: colour and width. Without colour, no escape sequence is written.
import { styleText } from 'node:util';

export interface Style {
  readonly colour: boolean;
  // Columns; Infinity to wrap and cut nothing.
  readonly width: number;
}

export type Ink = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

// The caller has checked the stream and NO_COLOR; Node must not check again.
const WITHOUT_CHECKS = { validateStream: false };

export function paint(style: Pick<Style, 'colour'>, ink: Ink, text: string): string {
  return style.colour && text !== '' ? styleText(ink, text, WITHOUT_CHECKS) : text;
}
