// The curves of the growth benches: positions on logarithmic axes, and names that can be read.
import { expect, test } from 'vitest';
import { curves, powersAround, spreadOut } from '../../bench/lib/plot.mjs';

const AXES = { x: 'runs', y: 'ms' };
const line = (name: string, toY: (x: number) => number) => ({
  name,
  points: [1000, 10_000, 100_000].map((x) => ({ x, y: toY(x) })),
});
type Path = [number, number][];
// From each point to the next.
const steps = (path: Path): Path =>
  path.slice(1).map(([x, y], index) => [x - (path[index]?.[0] ?? 0), y - (path[index]?.[1] ?? 0)]);
const pathsOf = (svg: string) =>
  [...svg.matchAll(/<polyline class="curve"[^>]* points="([^"]+)"/g)].map((match) =>
    (match[1] ?? '').split(' ').map((point) => point.split(',').map(Number) as [number, number]),
  );

test('what grows with a power is a straight line, steeper for a larger power', () => {
  const svg = curves('Costs', [line('linear', (x) => x / 1000), line('constant', () => 10)], AXES);
  const [linear, constant] = pathsOf(svg) as [Path, Path];
  const [first, second] = steps(linear) as [Path[number], Path[number]];
  expect(second[0]).toBeCloseTo(first[0], 0);
  expect(second[1]).toBeCloseTo(first[1], 0);
  // Up is smaller in a picture.
  expect(first[1]).toBeLessThan(0);
  for (const [, dy] of steps(constant)) expect(dy).toBe(0);
});

test('every point and name is inside the picture', () => {
  const series = Array.from({ length: 8 }, (_, number) => line(`figure ${number}`, (x) => 1 + (number * x) / 1e5));
  const svg = curves('Costs', series, AXES);
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? [];
  for (const [x, y] of pathsOf(svg).flat()) {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x).toBeLessThanOrEqual(Number(width));
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y).toBeLessThanOrEqual(Number(height));
  }
  for (const { name } of series) expect(svg).toContain(`>${name}</text>`);
});

test('a figure of zero is left out, because it has no logarithm', () => {
  const svg = curves('Costs', [line('sometimes', (x) => (x === 1000 ? 0 : x)), line('never', () => 0)], AXES);
  expect(pathsOf(svg).map((path) => path.length)).toEqual([2]);
  expect(svg).not.toMatch(/NaN|Infinity|>never</);
});

test('nothing to draw, a single point and names with markup make a whole picture', () => {
  for (const series of [[], [{ name: 'a < b & "c"', points: [{ x: 5, y: 5 }] }]]) {
    const svg = curves('x < y', series, AXES);
    expect(svg).toMatch(/^<svg [^]*<\/svg>\n$/);
    expect(svg).not.toMatch(/NaN|Infinity/);
    expect(svg).toContain('x &lt; y');
  }
});

test('the ticks are the powers of ten around all values', () => {
  expect(powersAround([3, 450])).toEqual([1, 10, 100, 1000]);
  expect(powersAround([1, 1000])).toEqual([1, 10, 100, 1000]);
  expect(powersAround([0.02])).toEqual([0.01, 0.1]);
  expect(powersAround([10])).toEqual([10, 100]);
  expect(powersAround([])).toEqual([1, 10]);
});

test('names move apart and keep their order', () => {
  expect(spreadOut([100, 20, 101, 60])).toEqual([100, 20, 115, 60]);
  expect(spreadOut([5, 5, 5])).toEqual([5, 20, 35]);
  expect(spreadOut([])).toEqual([]);
});
