// Draws docs/images/terminal.svg: real commands in a fresh data directory and their real output, as a picture of a
// terminal. Run it with `npm run picture` after the output has changed.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import stringWidth from 'string-width';

const root = fileURLToPath(new URL('..', import.meta.url));
const data = mkdtempSync(join(tmpdir(), 'parley-picture-'));
const SCENE = [
  ['run', 'rehearsal', 'Set up the storage of this project', '--interactive'],
  ['ls'],
  ['reply', 'last', '1'],
  ['verify', 'last'],
];

const CHAR = 8.4;
const LINE = 19;
const PAD = 18;
const BAR = 34;
const INKS = {
  1: 'font-weight="bold"',
  2: 'fill="#8b949e"',
  31: 'fill="#ff7b72"',
  32: 'fill="#7ee787"',
  33: 'fill="#e3b341"',
  36: 'fill="#79c0ff"',
};

function play(args) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [join(root, 'bin/parley.js'), ...args], {
    encoding: 'utf8',
    cwd: root,
    env: { ...process.env, PARLEY_DATA: data, FORCE_COLOR: '1' },
  });
  if (status !== 0 && status !== 3) throw new Error(`parley ${args.join(' ')}: ${stderr}`);
  const shown = args.map((word) => (/\s/.test(word) ? `"${word}"` : word)).join(' ');
  return [`\u001b[36m$\u001b[39m \u001b[1mparley ${shown}\u001b[22m`, ...stdout.trimEnd().split('\n'), ''];
}

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

// Splits a line with colours into pieces of text, each with its position.
function drawLine(line, row) {
  const inks = new Set();
  let column = 0;
  let out = '';
  for (const part of line.split(/(\u001b\[\d+m)/)) {
    const code = /^\u001b\[(\d+)m$/.exec(part)?.[1];
    if (code !== undefined) {
      if (INKS[code]) inks.add(code);
      else if (code === '22') ['1', '2'].forEach((ink) => inks.delete(ink));
      else if (code === '39') [...inks].filter((ink) => Number(ink) > 9).forEach((ink) => inks.delete(ink));
      continue;
    }
    if (part !== '') {
      const place = `x="${(PAD + column * CHAR).toFixed(1)}" y="${BAR + PAD + row * LINE}"`;
      const look = [...inks].map((ink) => INKS[ink]).join(' ');
      out += `<text xml:space="preserve" ${place} ${look}>${escape(part)}</text>\n`;
    }
    column += stringWidth(part);
  }
  return out;
}

try {
  const lines = SCENE.flatMap(play);
  const width = Math.ceil(PAD * 2 + CHAR * 102);
  const height = BAR + PAD * 2 + lines.length * LINE;
  const dots = ['#ff5f57', '#febc2e', '#28c840']
    .map((fill, index) => `<circle cx="${PAD + 4 + index * 20}" cy="17" r="6" fill="${fill}"/>`)
    .join('');
  const attributes = [
    'xmlns="http://www.w3.org/2000/svg"',
    `viewBox="0 0 ${width} ${height}"`,
    'role="img"',
    'aria-label="parley in a terminal: a run asks, is answered, succeeds and is verified"',
    `font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"`,
    'font-size="14"',
    'fill="#e6edf3"',
  ];
  const svg = `<svg ${attributes.join(' ')}>
<rect width="${width}" height="${height}" rx="10" fill="#0d1117"/>${dots}
${lines.map(drawLine).join('')}</svg>
`;
  writeFileSync(join(root, 'docs/images/terminal.svg'), svg);
} finally {
  rmSync(data, { recursive: true, force: true });
}
