// Renders rows as aligned columns that fit the width: wide columns shrink, droppable columns are dropped from the
// right, and as a last resort every cell is cut. Measures widths on the screen. No line ends with spaces.
import { textWidth } from './text-width.js';
import { fitLine, oneLine } from './safe-text.js';
import { paint, type Ink, type Style } from './style.js';

export interface Column {
  readonly header: string;
  readonly align?: 'left' | 'right';
  // For ids, which are useless in parts: cut only as a last resort.
  readonly whole?: boolean;
  readonly droppable?: boolean;
  // Which end of a long cell is kept.
  readonly keep?: 'start' | 'end';
  readonly ink?: (cell: string) => Ink | null;
}

const GAP = 2;
const SHORTEST = 8;

export function renderTable(rows: readonly (readonly string[])[], columns: readonly Column[], style: Style): string {
  const cells = rows.map((row) => columns.map((_, index) => oneLine(row[index] ?? '', Infinity)));
  const natural = columns.map(({ header }, index) =>
    Math.max(textWidth(header), ...cells.map((row) => textWidth(row[index] ?? ''))),
  );
  const least = columns.map(({ whole }, index) =>
    whole ? (natural[index] ?? 0) : Math.min(natural[index] ?? 0, SHORTEST),
  );
  const kept = keepColumns(columns, least, style.width);
  const floors = [least, least.map((each, index) => (columns[index]?.whole ? each : 0)), least.map(() => 0)];
  const widths = shrink(
    kept.map((index) => natural[index] ?? 0),
    floors.map((floor) => kept.map((index) => floor[index] ?? 0)),
    style.width,
  );

  const line = (row: readonly string[], ink: (column: Column, cell: string) => Ink | null): string => {
    const shown = kept.map((index, at) =>
      fitLine(row[index] ?? '', widths[at] ?? 0, { keep: columns[index]?.keep ?? 'start' }),
    );
    let text = '';
    let owed = 0;
    for (const [at, index] of kept.entries()) {
      const column = columns[index] as Column;
      const cell = shown[at] ?? '';
      const blank = (widths[at] ?? 0) - textWidth(cell);
      // Padding is written only before the next non-empty cell.
      if (cell !== '') {
        const before = owed + (column.align === 'right' ? blank : 0);
        const colour = ink(column, cell);
        text += ' '.repeat(before) + (colour ? paint(style, colour, cell) : cell);
        owed = column.align === 'right' ? 0 : blank;
      } else {
        owed += blank;
      }
      owed += GAP;
    }
    return text;
  };
  const head = line(
    columns.map(({ header }) => header),
    () => 'dim',
  );
  return [head, ...cells.map((row) => line(row, (column, cell) => column.ink?.(cell) ?? null))]
    .map((each) => `${each}\n`)
    .join('');
}

function keepColumns(columns: readonly Column[], least: readonly number[], width: number): number[] {
  let kept = columns.map((_, index) => index);
  while (total(kept.map((index) => least[index] ?? 0)) > width) {
    const last = kept.findLast((index) => columns[index]?.droppable);
    if (last === undefined) break;
    kept = kept.filter((index) => index !== last);
  }
  return kept;
}

// Shrinks the widest column first, down to its floor; if that is not enough, down to the next floor.
function shrink(natural: readonly number[], floors: readonly (readonly number[])[], width: number): number[] {
  const widths = [...natural];
  for (const floor of floors) {
    while (total(widths) > width) {
      const room = widths.map((each, at) => (each > (floor[at] ?? 0) ? each : -1));
      const widest = room.indexOf(Math.max(...room));
      if ((room[widest] ?? -1) < 0) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
    }
  }
  return widths;
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each, 0) + GAP * Math.max(0, widths.length - 1);
}
