// npm run bench -- NAME...|all: runs benches one after the other. Each compares systems within one run, because the
// machine is noisy and ratios are not. Comparisons with other systems and the growth of costs are kept in
// bench/results; `-- page` writes docs/internals/benchmarks.md from them. `-- once NAME...|all` runs one round of each,
// with small sizes, and keeps nothing: it shows that the benches work.
import { runGrowth } from './lib/growth.mjs';
import { runBench } from './lib/harness.mjs';
import { GROWTH, loadBench, PROOFS, RETENTION, writePage } from './lib/page.mjs';

// Benches of Parley alone, which are only printed.
const LOOKS = ['parse', 'cli', 'sse', 'large-runs', 'postgres', 'postgres-store'];

const isOnce = process.argv[2] === 'once';
const asked = process.argv.slice(isOnce ? 3 : 2);
const names = asked.includes('all')
  ? [...PROOFS, ...GROWTH, 'page', ...LOOKS]
  : asked.flatMap((name) => (name === 'growth' ? GROWTH : [name]));
const unknown = names.find((name) => ![...PROOFS, ...GROWTH, RETENTION, ...LOOKS, 'page'].includes(name));
if (unknown !== undefined || names.length === 0) {
  if (unknown !== undefined && unknown !== '--help') console.error(`There is no bench "${unknown}".`);
  console.error(`Usage: npm run bench -- [once] NAME… | all | page
  compared with other systems, kept in bench/results: ${PROOFS.join(', ')}
  how costs grow, kept as well: growth (all of them), ${GROWTH.join(', ')}
  on demand: ${RETENTION} (half an hour)
  Parley alone, only printed: ${LOOKS.join(', ')}
  all: every bench, about two hours
  once: one round of each with small sizes, nothing is kept
  page: writes docs/internals/benchmarks.md from bench/results`);
  process.exit(unknown === '--help' ? 0 : 2);
}
// A bench that fails does not stop the others.
process.on('unhandledRejection', reportFailure);
for (const name of names) {
  try {
    await measure(name);
  } catch (error) {
    reportFailure(error);
    console.error(`${name} failed`);
  }
}

function reportFailure(error) {
  console.error(error);
  process.exitCode = 1;
}

async function measure(name) {
  if (name === 'page') return writePage();
  const bench = await loadBench(name);
  if (bench.measure) return runGrowth(bench, { isOnce });
  return typeof bench === 'function' ? bench([]) : runBench(bench, isOnce ? { rounds: 1, isKept: false } : {});
}
