// npm run mutate -- PATH... [--tests PATH...]: changes one place of the source at a time and runs the tests. Prints
// each change that no test notices as FILE:LINE, original → mutant. The tests of src/NAME are those in tests/NAME
// unless --tests names others.
//
// No file is written: a plugin gives the changed module to the tests. Processes that a test starts from dist/ therefore
// run the original. --limit SECONDS bounds the time for one mutant (default: ten times that of the original).
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parseSync, Visitor } from 'oxc-parser';
import { createVitest } from 'vitest/node';

// A Map: an object literal would also find inherited names such as toString.
const OPPOSITES = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['min', 'max'],
  ['max', 'min'],
]);
const root = fileURLToPath(new URL('..', import.meta.url));
const { sources, tests, limit } = readArguments(process.argv.slice(2));
const files = sources.flatMap(listSources);
const mutants = files.flatMap((file) => listMutants(file, readFileSync(join(root, file), 'utf8')));
if (mutants.length === 0) fail(`There is nothing to change in ${sources.join(' ')}.`);

let current = null;
const vitest = await createVitest(
  'test',
  {
    root,
    config: false,
    watch: false,
    include: tests.map((path) => (path.endsWith('.ts') ? path : join(path, '**/*.test.ts'))),
    setupFiles: ['tests/support/run-hooks.ts'],
    isolate: false,
    // No bail: Vitest may handle its cancellation after the run, and then it skips the tests of the next mutant.
    maxWorkers: 2,
    // A mutant may allocate without end; its worker ends before the machine runs out of memory.
    execArgv: ['--max-old-space-size=1024'],
    testTimeout: 120_000,
    teardownTimeout: 1000,
    reporters: [{}],
  },
  {
    configFile: false,
    plugins: [
      {
        name: 'mutant',
        enforce: 'pre',
        load: (id) => (current !== null && id.split('?')[0] === current.path ? current.code : null),
      },
    ],
  },
);
try {
  await vitest.standalone();
  const specifications = await vitest.globTestSpecifications();
  if (specifications.length === 0) fail(`There are no tests in ${tests.join(' ')}.`);
  const startedAt = performance.now();
  if (await isNoticed(specifications, 600_000)) fail(`A test fails without a change: ${tests.join(' ')}`);
  const limitMs = limit === null ? Math.max(10_000, 10 * (performance.now() - startedAt)) : 1000 * limit;
  console.log(`${mutants.length} mutants, at most ${Math.round(limitMs / 1000)} s for each`);

  let survivors = 0;
  for (const mutant of mutants) {
    current = mutant;
    vitest.invalidateFile(mutant.path);
    const [own, others] = splitByName(specifications, mutant.file);
    if (!(await isNoticed(own, limitMs)) && !(await isNoticed(others, limitMs))) {
      survivors += 1;
      console.log(`${mutant.file}:${mutant.line}  ${mutant.original} → ${mutant.replacement}`);
    }
    current = null;
    vitest.invalidateFile(mutant.path);
  }
  console.log(`${mutants.length - survivors} of ${mutants.length} mutants were detected, ${survivors} survived`);
  process.exitCode = survivors > 0 ? 1 : 0;
} finally {
  await vitest.close();
}

// The tests that are named after the source file, which detect most mutants, and the others.
function splitByName(specifications, file) {
  const isOwn = ({ moduleId }) => basename(moduleId).startsWith(basename(file, '.ts'));
  return [specifications.filter(isOwn), specifications.filter((specification) => !isOwn(specification))];
}

// Returns whether a test fails. A mutant that never ends counts as detected: its workers are killed.
async function isNoticed(specifications, limitMs) {
  if (specifications.length === 0) return false;
  const timer = setTimeout(killWorkers, limitMs);
  try {
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
    // Vitest also returns the test files of earlier runs, with the results of other mutants.
    const run = new Set(specifications.map(({ moduleId }) => moduleId));
    return unhandledErrors.length > 0 || testModules.some((module) => run.has(module.moduleId) && !module.ok());
  } catch {
    return true;
  } finally {
    clearTimeout(timer);
    vitest.state.clearErrors();
  }
}

// The workers are the children of this process that Node started with Vitest's entry.
function killWorkers() {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  for (const pid of children) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('vitest')) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has exited.
    }
  }
}

function listMutants(file, code) {
  const { program, errors } = parseSync(file, code);
  if (errors.length > 0) fail(`${file} cannot be parsed: ${errors[0].message}`);
  const mutants = [];
  const types = new Set();
  const replace = ({ start, end }, replacement) => {
    const original = code.slice(start, end);
    if (original === replacement) return;
    const line = code.slice(0, start).split('\n').length;
    mutants.push({
      file,
      path: join(root, file),
      line,
      start,
      original: shorten(original),
      replacement: shorten(replacement) || 'nothing',
      code: code.slice(0, start) + replacement + code.slice(end),
    });
  };
  const text = ({ start, end }) => code.slice(start, end);
  const operator = (node, changes) => {
    const change = changes[node.operator];
    if (change) replace(node, `${text(node.left)} ${change} ${text(node.right)}`);
  };
  const condition = (node) => {
    replace(node, 'true');
    replace(node, 'false');
  };
  new Visitor({
    BinaryExpression: (node) =>
      operator(node, {
        '===': '!==',
        '!==': '===',
        '<': '<=',
        '<=': '<',
        '>': '>=',
        '>=': '>',
        '+': '-',
        '-': '+',
        '*': '/',
        '/': '*',
        '%': '*',
      }),
    LogicalExpression: (node) => operator(node, { '&&': '||', '||': '&&', '??': '&&' }),
    UnaryExpression: (node) => node.operator === '!' && replace(node, text(node.argument)),
    IfStatement: (node) => condition(node.test),
    ConditionalExpression: (node) => condition(node.test),
    TSLiteralType: (node) => types.add(node.literal),
    Literal(node) {
      if (types.has(node)) return;
      if (typeof node.value === 'boolean') replace(node, String(!node.value));
      if (typeof node.value === 'number') replace(node, `(${node.raw} + 1)`);
    },
    ExpressionStatement: (node) => node.expression.type === 'CallExpression' && replace(node, ';'),
    ThrowStatement: (node) => replace(node, ';'),
    MemberExpression({ property }) {
      const other = OPPOSITES.get(property.name);
      if (property.type === 'Identifier' && other) replace(property, other);
    },
    ArrayExpression: (node) => node.elements.length > 0 && replace(node, '[]'),
  }).visit(program);
  return mutants.toSorted((a, b) => a.start - b.start);
}

function shorten(code) {
  const line = code.replaceAll(/\s+/g, ' ');
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}

function listSources(path) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(path, name))
    .toSorted();
}

function readArguments(argv) {
  const at = argv.indexOf('--tests');
  const { values, positionals } = parseArgs({
    args: at === -1 ? argv : argv.slice(0, at),
    options: { limit: { type: 'string' } },
    allowPositionals: true,
  });
  const sources = positionals.map((path) => relative(root, resolve(path)));
  if (sources.length === 0 || sources.some((path) => !path.startsWith('src/')))
    fail('Usage: npm run mutate -- [--limit SECONDS] src/PATH... [--tests tests/PATH...]');
  const tests = at === -1 ? [...new Set(sources.map((path) => `tests/${path.split('/')[1]}`))] : argv.slice(at + 1);
  return { sources, tests, limit: values.limit === undefined ? null : Number(values.limit) };
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
