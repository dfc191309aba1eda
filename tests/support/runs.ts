// How many cases a property test tries: all of them in `.ci/run` (CI=true), a fifth in `npm test`, a twentieth in
// `npm run check`. Cases without a fixed seed differ from run to run, so local runs still find new ones.
const SHARE = process.env['CI'] === 'true' ? 1 : Number(process.env['PARLEY_PROPERTY_SHARE'] ?? 5);

export function runs(count: number): number {
  return Math.ceil(count / SHARE);
}
