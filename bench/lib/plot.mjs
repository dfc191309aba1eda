// Draws figures as SVG, readable on light and dark backgrounds: bars with their spread, lines over time, and curves of
// growth.
import { median, sorted, format } from './figures.mjs';

const LIGHT = [
  'text{font:13px system-ui,sans-serif;fill:#24292f}',
  '.dim{fill:#57606a}',
  '.axis{stroke:#8c959f;stroke-width:1}',
  '.ours{fill:#1a7f37}',
  '.other{fill:#8c959f}',
  '.bare{fill:#d0d7de}',
  '.spread{stroke:#24292f;stroke-width:1.5}',
  '.line{fill:none;stroke:#1a7f37;stroke-width:1.5}',
  '.grid{stroke:#d0d7de;stroke-width:1}',
  '.curve{fill:none;stroke-width:2}',
];
const DARK = [
  'text{fill:#e6edf3}',
  '.dim{fill:#9198a1}',
  '.ours{fill:#3fb950}',
  '.other{fill:#6e7681}',
  '.bare{fill:#3d444d}',
  '.spread{stroke:#e6edf3}',
  '.line{stroke:#3fb950}',
  '.grid{stroke:#3d444d}',
];
// Readable on both backgrounds.
const COLOURS = ['#2da44e', '#218bff', '#d4791f', '#a475f9', '#e5534b', '#1b9e9e', '#bf8700', '#768390'];
const STYLE = `<style>
${LIGHT.join('')}
@media(prefers-color-scheme:dark){${DARK.join('')}}
</style>`;

const WIDTH = 720;
// The width of an average letter; the longest name must fit.
const LETTER = 7.2;
const ROW = 30;
const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

function page(height, title, body) {
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ` +
    `${height}" role="img" aria-label="${escape(title)}">${STYLE}\n<text x="8" y="20" ` +
    `font-weight="600">${escape(title)}</text>\n${body}\n</svg>\n`
  );
}

// A bar for each system: the median, with a line from the smallest to the largest.
export function bars(title, rows) {
  const known = rows
    .map(({ who, values }) => ({ who, values: sorted(values.filter((value) => value !== null)) }))
    .filter(({ values }) => values.length > 0);
  const most = Math.max(...known.flatMap(({ values }) => values), Number.MIN_VALUE);
  const left = Math.max(190, ...known.map(({ who }) => Math.ceil(who.length * LETTER) + 16));
  const room = WIDTH - left - 130;
  const at = (value) => left + (Math.max(0, value) / most) * room;
  const body = known
    .map(({ who, values }, index) => {
      const y = 34 + index * ROW;
      const middle = median(values);
      const kind = who.startsWith('Parley') ? 'ours' : who.startsWith('bare') ? 'bare' : 'other';
      const [least, largest] = [values[0], values.at(-1)];
      const spread =
        least === largest
          ? ''
          : `<line class="spread" x1="${at(least).toFixed(1)}" x2="${at(largest).toFixed(1)}" y1="${y + 10}" ` +
            `y2="${y + 10}"/>`;
      return (
        `<text x="${left - 8}" y="${y + 15}" text-anchor="end">${escape(who)}</text><rect class="${kind}" ` +
        `x="${left}" y="${y}" width="${Math.max(1, at(middle) - left).toFixed(1)}" height="20" ` +
        `rx="2"/>${spread}<text class="dim" x="${(Math.max(at(middle), at(largest)) + 8).toFixed(1)}" ` +
        `y="${y + 15}">${format(middle)}</text>`
      );
    })
    .join('\n');
  return page(44 + known.length * ROW, title, body);
}

// One figure as a function of another, starting at zero.
export function line(title, points, { x, y }) {
  const height = 240;
  const [left, right, top, bottom] = [64, WIDTH - 16, 40, height - 36];
  const mostX = Math.max(...points.map((point) => point.x), 1);
  const mostY = Math.max(...points.map((point) => point.y), 1) * 1.1;
  const place = (point) =>
    [left + (point.x / mostX) * (right - left), bottom - (point.y / mostY) * (bottom - top)]
      .map((value) => value.toFixed(1))
      .join(',');
  const marks = [0, 0.25, 0.5, 0.75, 1]
    .map(
      (part) =>
        `<text class="dim" x="${left - 8}" y="${(bottom - part * (bottom - top) + 4).toFixed(1)}" ` +
        `text-anchor="end">${format(part * mostY)}</text><text class="dim" ` +
        `x="${(left + part * (right - left)).toFixed(1)}" y="${bottom + 18}" ` +
        `text-anchor="${part === 1 ? 'end' : 'middle'}">${format(part * mostX)}</text>`,
    )
    .join('');
  const body =
    `${marks}<line class="axis" x1="${left}" x2="${right}" y1="${bottom}" y2="${bottom}"/><line ` +
    `class="axis" x1="${left}" x2="${left}" y1="${top}" y2="${bottom}"/><polyline class="line" ` +
    `points="${points.map(place).join(' ')}"/><text class="dim" x="${right}" y="${height - 4}" ` +
    `text-anchor="end">${escape(x)}</text><text class="dim" x="${left + 6}" ` +
    `y="${top + 4}">${escape(y)}</text>`;
  return page(height, title, body);
}

// Several figures as functions of a size, both in powers of ten: a straight line has one exponent. A series: { name,
// points: [{ x, y }] }; its name is at the end of its line. Only what is greater than zero can be drawn.
export function curves(title, series, { x, y }) {
  const known = series
    .map(({ name, points }) => ({ name, points: points.filter((point) => point.x > 0 && point.y > 0) }))
    .filter(({ points }) => points.length > 0);
  const height = 320;
  const names = Math.max(0, ...known.map(({ name }) => Math.ceil(name.length * LETTER)));
  const [left, right, top, bottom] = [64, WIDTH - 24 - names, 56, height - 40];
  const points = known.flatMap((each) => each.points);
  const [xTicks, yTicks] = [powersAround(points.map((point) => point.x)), powersAround(points.map((point) => point.y))];
  const atX = (value) => left + along(xTicks, value) * (right - left);
  const atY = (value) => bottom - along(yTicks, value) * (bottom - top);
  const grid = [
    ...yTicks.map(
      (tick) =>
        `<line class="grid" x1="${left}" x2="${right}" y1="${atY(tick).toFixed(1)}" y2="${atY(tick).toFixed(1)}"/>` +
        `<text class="dim" x="${left - 8}" y="${(atY(tick) + 4).toFixed(1)}" ` +
        `text-anchor="end">${tickText(tick)}</text>`,
    ),
    ...xTicks.map(
      (tick) =>
        `<text class="dim" x="${atX(tick).toFixed(1)}" y="${bottom + 18}" ` +
        `text-anchor="middle">${tickText(tick)}</text>`,
    ),
  ].join('');
  const ends = spreadOut(known.map((each) => atY(each.points.at(-1).y)));
  const lines = known.map(({ name, points: path }, index) => {
    const colour = COLOURS[index % COLOURS.length];
    const at = path.map((point) => `${atX(point.x).toFixed(1)},${atY(point.y).toFixed(1)}`);
    return (
      `<polyline class="curve" stroke="${colour}" points="${at.join(' ')}"/>` +
      path
        .map((_, number) => at[number].split(','))
        .map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`)
        .join('') +
      `<text x="${(atX(path.at(-1).x) + 10).toFixed(1)}" y="${(ends[index] + 4).toFixed(1)}" ` +
      `style="fill:${colour}">${escape(name)}</text>`
    );
  });
  const axes =
    `<text class="dim" x="${right}" y="${height - 6}" text-anchor="end">${escape(x)}</text>` +
    `<text class="dim" x="${left + 6}" y="${top - 6}">${escape(y)}</text>`;
  return page(height, title, [grid, ...lines, axes].join('\n'));
}

// The powers of ten from the one below all values to the one above, at least two.
export function powersAround(values) {
  const logs = values.length > 0 ? values.map(Math.log10) : [0];
  const low = Math.floor(Math.min(...logs));
  const high = Math.max(low + 1, Math.ceil(Math.max(...logs)));
  return Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
}

// Where a value is between the first and the last tick, from 0 to 1.
const along = (ticks, value) => Math.log(value / ticks[0]) / Math.log(ticks.at(-1) / ticks[0]);

const tickText = (tick) => (tick < 0.01 ? String(tick) : format(tick));

const LINE_HEIGHT = 15;

// Moves positions down as far as needed, so that texts at them do not overlap.
export function spreadOut(positions) {
  const placed = [...positions];
  const order = positions.map((_, index) => index).toSorted((a, b) => positions[a] - positions[b]);
  for (const [rank, index] of order.entries())
    if (rank > 0) placed[index] = Math.max(placed[index], placed[order[rank - 1]] + LINE_HEIGHT);
  return placed;
}
