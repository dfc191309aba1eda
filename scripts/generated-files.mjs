// Helpers of the generators: replace the generated part of a page, and write files or, with --check, compare them.
import { readFile, writeFile } from 'node:fs/promises';

const ROOT = new URL('../', import.meta.url);
const END = '<!-- end -->';

export const readText = (path) => readFile(new URL(path, ROOT), 'utf8');
export const readJson = async (path) => JSON.parse(await readText(path));

// Returns the text of a page with new content between `<!-- generated: NAME -->` and `<!-- end -->`.
export function replacePart(page, name, content) {
  const start = `<!-- generated: ${name} -->`;
  const from = page.indexOf(start);
  const to = page.indexOf(END, from);
  if (from < 0 || to < 0) throw new Error(`The page has no part between "${start}" and "${END}".`);
  return `${page.slice(0, from)}${start}\n${content}\n${page.slice(to)}`;
}

// Renders a Markdown table. A cell is one line, and a `|` in it is escaped.
export function renderTable(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.map(renderCell).join(' | ')} |`).join('\n');
}

function renderCell(text) {
  return String(text)
    .replaceAll('|', '\\|')
    .replaceAll(/\s*\n\s*/g, ' ');
}

// Writes the files (path → text). With --check it writes nothing; it reports each file that differs and sets the exit
// code to 1.
export async function writeOrCheck(files) {
  const check = process.argv.includes('--check');
  for (const [path, text] of files) {
    if ((await readText(path).catch(() => null)) === text) continue;
    if (!check) await writeFile(new URL(path, ROOT), text);
    else {
      console.error(`${path} differs from its source. Run npm run generate.`);
      process.exitCode = 1;
    }
  }
}
