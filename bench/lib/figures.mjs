// Statistics and their text: the median, the spread, and readable numbers.

export const now = () => Number(process.hrtime.bigint()) / 1e6;

export const sorted = (values) => values.toSorted((a, b) => a - b);

// The smallest value that this share of the values does not exceed.
export const share = (values, part) => sorted(values)[Math.max(0, Math.ceil(values.length * part) - 1)];

export const median = (values) => share(values, 0.5);

export const sum = (values) => values.reduce((all, value) => all + value, 0);

export const UNKNOWN = '–';

// Formats a number with as many digits as its size needs.
export function format(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return UNKNOWN;
  const size = Math.abs(value);
  return new Intl.NumberFormat('en', { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 }).format(value);
}
