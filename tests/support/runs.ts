// How many cases a property test tries: all of them in `.ci/run` (CI=true), a fifth in a local run. Cases without a
// fixed seed differ from run to run, so local runs still find new ones.
const SHARE = process.env['CI'] === 'true' ? 1 : 5;

export function runs(count: number): number {
  return Math.ceil(count / SHARE);
}
