// Statistics and their text: the median, the spread, and readable numbers.

export const now = () => Number(process.hrtime.bigint()) / 1e6;

export const sorted = (values) => values.toSorted((a, b) => a - b);

// The smallest value that this share of the values does not exceed.
export const share = (values, part) => sorted(values)[Math.max(0, Math.ceil(values.length * part) - 1)];

export const median = (values) => share(values, 0.5);

export const sum = (values) => values.reduce((all, value) => all + value, 0);

// The exponent with which y grows with x in these points [x, y]: the slope of the line through their logarithms with
// the least squares. 0 is constant, 1 linear. Smaller values than `least` are noise and count as `least`. Null: fewer
// than two different sizes.
export function exponentOf(points, least = Number.MIN_VALUE) {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(Math.max(least, y))]);
  const mean = (index) => sum(logs.map((log) => log[index])) / logs.length;
  const [x, y] = [mean(0), mean(1)];
  const width = sum(logs.map((log) => (log[0] - x) ** 2));
  return width > 0 ? sum(logs.map((log) => (log[0] - x) * (log[1] - y))) / width : null;
}

export const UNKNOWN = '–';

// Formats a number with as many digits as its size needs.
export function format(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return UNKNOWN;
  const size = Math.abs(value);
  return new Intl.NumberFormat('en', { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 }).format(value);
}
