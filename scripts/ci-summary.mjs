// Adds up vitest's JSON results and ends with the line "N passed, N failed". Fails if anything failed, or if nothing
// ran. The second argument says whether a step failed that counts no tests (types, lint, a bench).
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const [dir, broken] = process.argv.slice(2);
let passed = 0;
let failed = 0;
// Told once more at the end, where one looks first.
const failures = [];
for (const name of readdirSync(dir).filter((file) => file.endsWith('.json'))) {
  const results = JSON.parse(readFileSync(join(dir, name), 'utf8'));
  passed += results.numPassedTests;
  for (const { assertionResults, name: file } of results.testResults) {
    for (const { status, fullName, failureMessages } of assertionResults) {
      if (status === 'failed')
        failures.push(
          `failed: ${name.replace('.json', '')}: ${relative(process.cwd(), file)}: ${fullName}`,
          ...failureMessages.map(shorten),
        );
    }
  }
  // A file that does not even load has no tests to count.
  failed += results.numFailedTests + (results.numFailedTests === 0 ? results.numFailedTestSuites : 0);
}
// Enough to see what it was: the rest stands above.
function shorten(message) {
  return message
    .split('\n')
    .slice(0, 30)
    .map((line) => `    ${line.slice(0, 400)}`)
    .join('\n');
}

if (broken === '1' && failed === 0) failed = 1;
for (const line of failures) console.log(line);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
console.log(`${passed} passed, ${failed} failed`);
