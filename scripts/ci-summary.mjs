// node scripts/ci-summary.mjs FOLDER: adds up the results of the lanes of .ci/run and ends with the line "N passed, N
// failed". Reads vitest's JSON results and the exit code of each lane (LANE.exit). Fails if anything failed, or if no
// test ran.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const [folder] = process.argv.slice(2);
const names = readdirSync(folder);
let passed = 0;
let failed = 0;
// Listed again at the end of the output, where people look first.
const failures = [];
for (const name of names.filter((file) => file.endsWith('.json'))) {
  const results = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  passed += results.numPassedTests;
  failed += results.numFailedTests;
  for (const { assertionResults, name: file, status, message } of results.testResults) {
    const title = `failed: ${name.replace('.json', '')}: ${relative(process.cwd(), file)}`;
    // A file that cannot be loaded has no tests.
    if (status === 'failed' && assertionResults.every((test) => test.status !== 'failed')) {
      failed += 1;
      failures.push(title, shorten(message));
    }
    for (const { status: outcome, fullName, failureMessages } of assertionResults) {
      if (outcome === 'failed') failures.push(`${title}: ${fullName}`, ...failureMessages.map(shorten));
    }
  }
}
// A lane can fail without a failed test: its types, its build, its bench, or an unhandled error.
const exitCodes = names
  .filter((file) => file.endsWith('.exit'))
  .map((file) => [file.replace('.exit', ''), Number(readFileSync(join(folder, file), 'utf8'))]);
for (const [lane, code] of exitCodes) if (code !== 0) failures.push(`failed: lane ${lane} with code ${code}`);
if (failed === 0) failed = exitCodes.filter(([, code]) => code !== 0).length;

for (const line of failures) console.log(line);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
console.log(`${passed} passed, ${failed} failed`);

// The first lines, which show the cause; the whole text is further up in the output.
function shorten(message) {
  return message
    .split('\n')
    .slice(0, 30)
    .map((line) => `    ${line.slice(0, 400)}`)
    .join('\n');
}
