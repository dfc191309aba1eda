// npm run bench -- NAME...|all: measures one thing after the other, ratios within one run; the machine is noisy, ratios are not.
// What is measured beside others is kept in bench/results and told in docs/benchmarks.md (-- page writes it anew from there).
import { runBench } from './lib/harness.mjs';

// Beside other systems, or beside the bare limit; kept.
const PROOFS = ['first-event', 'in-process', 'stream', 'slow-reader', 'reconnect', 'waiting', 'replies', 'many-runs', 'dirty', 'replay', 'soak', 'profile'];
// Of Parley alone; printed.
const LOOKS = ['parse', 'cli', 'sse', 'postgres', 'postgres-store', 'claims'];

const asked = process.argv.slice(2);
const names = asked.length === 0 || asked.includes('all') ? [...PROOFS, 'page', ...LOOKS] : asked;
const unknown = names.find((name) => ![...PROOFS, ...LOOKS, 'page'].includes(name));
if (unknown !== undefined) {
  console.error(`there is no bench "${unknown}"; the benches are ${[...PROOFS, ...LOOKS].join(', ')}, all; page writes docs/benchmarks.md from what is kept`);
  process.exit(2);
}
for (const name of names) {
  if (name === 'page') {
    (await import('./lib/page.mjs')).writePage();
    continue;
  }
  const { default: bench } = await import(`./${name}.mjs`);
  if (typeof bench === 'function') await bench([]);
  else await runBench(bench);
}
