// npm run bench -- NAME...|all: measures one thing after the other, ratios within one run; the machine is noisy, ratios
// are not. What is measured beside others is kept in bench/results and told in docs/benchmarks.md (-- page writes it
// anew from there).
import { runBench } from './lib/harness.mjs';
import { PROOFS, writePage } from './lib/page.mjs';

// Of Parley alone; printed.
const LOOKS = ['parse', 'cli', 'sse', 'postgres', 'postgres-store'];

const asked = process.argv.slice(2);
const names = asked.includes('all') ? [...PROOFS, 'page', ...LOOKS] : asked;
const unknown = names.find((name) => ![...PROOFS, ...LOOKS, 'page'].includes(name));
if (unknown !== undefined || names.length === 0) {
  if (unknown !== undefined && unknown !== '--help') console.error(`there is no bench "${unknown}"`);
  console.error(`npm run bench -- NAME…
  beside other systems, kept in bench/results: ${PROOFS.join(', ')}
  of Parley alone, printed: ${LOOKS.join(', ')}
  all: all of them, about half an hour; page: docs/benchmarks.md again, from what is kept`);
  process.exit(unknown === '--help' ? 0 : 2);
}
// One that fails does not take the others with it, nor does what fails before somebody waits for it.
process.on('unhandledRejection', tellFailure);
for (const name of names) {
  try {
    await measure(name);
  } catch (error) {
    tellFailure(error);
    console.error(`${name} failed`);
  }
}

function tellFailure(error) {
  console.error(error);
  process.exitCode = 1;
}

async function measure(name) {
  if (name === 'page') return writePage();
  const { default: bench } = await import(`./${name}.mjs`);
  return typeof bench === 'function' ? bench([]) : runBench(bench);
}
