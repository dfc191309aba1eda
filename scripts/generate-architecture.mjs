// Draws the imports between the folders of src into ARCHITECTURE.md. Leaves out an arrow that follows from two others.
// With --check it writes nothing and fails when the page differs.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readText, replacePart, writeOrCheck } from './generated-files.mjs';

const PAGE = 'ARCHITECTURE.md';
const source = fileURLToPath(new URL('../src', import.meta.url));
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
const folderOf = (file) => file.split('/')[0];

const imports = new Map();
for (const file of files) {
  const from = folderOf(file);
  const targets = imports.get(from) ?? new Set();
  imports.set(from, targets);
  const text = readFileSync(join(source, file), 'utf8');
  for (const [, target] of text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
    const to = folderOf(relative(source, join(source, dirname(file), target)));
    if (to !== from) targets.add(to);
  }
}

// The folders that a folder imports, directly or through others.
const reached = new Map();
function reach(folder) {
  if (reached.has(folder)) return reached.get(folder);
  const all = new Set();
  reached.set(folder, all);
  for (const next of imports.get(folder) ?? []) for (const far of [next, ...reach(next)]) all.add(far);
  return all;
}

function isImplied(from, to) {
  return [...imports.get(from)].some((other) => other !== to && reach(other).has(to));
}

const nameOf = (folder) => folder.replaceAll(/[^a-z]/g, '_');
const lines = [...imports.keys()].toSorted().flatMap((from) =>
  [...imports.get(from)]
    .filter((to) => !isImplied(from, to))
    .toSorted()
    .map((to) => `  ${nameOf(from)}[${from}] --> ${nameOf(to)}[${to}]`),
);
const picture = ['```mermaid', 'flowchart TD', ...lines, '```'].join('\n');

await writeOrCheck(new Map([[PAGE, replacePart(await readText(PAGE), 'imports', `\n${picture}\n`)]]));
