// Reads the fenced code blocks of a documentation page, and runs those of one page in one shell.
//
// HTML comments directly above a block control how it runs:
//   not run: REASON     the block cannot run in a test
//   needs: PROGRAM      the block runs where this program is installed
//   file: PATH          the block is the content of a file ($PARLEY_DATA may be part of the path)
//   keeps running       the block is one command that runs until the page ends; the next block waits for its address
//   server stopped      the commands that keep running are stopped before the block runs
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { steadyPort } from '../support/steady-port.js';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const PROGRAM_FOLDERS = ['/usr/bin', '/bin'];
const PAGE_TIMEOUT_MS = 240_000;
// Replaces the ports of pages, of the server and of a program next to it: each page gets free ones.
const PORTS = ['7717', '7718'];
const STAND_INS = join(ROOT, 'tests/stand-ins/bin');

export interface CodeBlock {
  /** The page and line of the opening fence. */
  readonly place: string;
  readonly language: string;
  readonly text: string;
  readonly notes: ReadonlyMap<string, string>;
}

/** A command of a `console` block with the output that the page shows. */
interface ShownCommand {
  readonly command: string;
  readonly output: string;
}

export function readBlocks(page: string): CodeBlock[] {
  const lines = readFileSync(join(ROOT, page), 'utf8').split('\n');
  const blocks: CodeBlock[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const [, indent = '', language] = /^( *)```(\w+)/.exec(lines[at] ?? '') ?? [];
    if (language === undefined) continue;
    const place = `${page}:${at + 1}`;
    const notes = readNotes(lines, at);
    const text: string[] = [];
    for (at += 1; lines[at] !== `${indent}\`\`\``; at += 1) {
      if (at >= lines.length) throw new Error(`${place}: the block has no end`);
      text.push((lines[at] ?? '').slice(indent.length));
    }
    blocks.push({ place, language, text: text.join('\n'), notes });
  }
  return blocks;
}

function readNotes(lines: readonly string[], fence: number): Map<string, string> {
  const notes = new Map<string, string>();
  for (let at = fence - 1; at >= 0; at -= 1) {
    const [, name, value = ''] = /^ *<!-- ([\w ]+)(?:: (.+))? -->$/.exec(lines[at] ?? '') ?? [];
    if (name === undefined) break;
    notes.set(name, value);
  }
  return notes;
}

export const isShell = ({ language }: CodeBlock): boolean => ['sh', 'bash', 'console'].includes(language);

export function canRun({ notes }: CodeBlock): boolean {
  const program = notes.get('needs');
  return (
    !notes.has('not run') &&
    (program === undefined || PROGRAM_FOLDERS.some((folder) => existsSync(join(folder, program))))
  );
}

/** Runs the blocks of a page in order, in one shell and a new folder. Returns the differences from the page. */
export async function runPage(
  blocks: readonly CodeBlock[],
  { env = {} }: { env?: Readonly<Record<string, string>> } = {},
): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-page-'));
  try {
    const ports = await Promise.all(PORTS.map(() => steadyPort()));
    const withPorts = (text: string): string =>
      PORTS.reduce((changed, port, at) => changed.replaceAll(port, String(ports[at])), text);
    for (const name of ['bin', 'home', 'work', 'work/node_modules']) mkdirSync(join(folder, name));
    symlinkSync(process.execPath, join(folder, 'bin/node'));
    symlinkSync(ROOT, join(folder, 'work/node_modules/parley-agents'));
    // A server on the default port would conflict with servers of other tests.
    const program = `exec node '${join(ROOT, 'bin/parley.js')}'`;
    const serve = `${program} serve --port ${ports[0]} "$@"`;
    const shim = `#!/bin/sh\n[ "$1" != serve ] || { shift; ${serve}; }\n${program} "$@"\n`;
    writeFileSync(join(folder, 'bin/parley'), shim, { mode: 0o755 });
    const script = buildScript(
      blocks.map((block) => ({ ...block, text: withPorts(block.text) })),
      folder,
    );
    writeFileSync(join(folder, 'page.sh'), script.text);
    const { output, code } = await runScript(folder, env);
    const differences = compareOutput(output, script.commands);
    if (code !== 0) differences.push(`The shell ended with code ${code} after:\n${output.slice(-3000)}`);
    return differences;
  } finally {
    killProcesses(folder);
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

const MARK = '@@page';

interface Script {
  readonly text: string;
  readonly commands: readonly (ShownCommand & { readonly place: string })[];
}

function buildScript(blocks: readonly CodeBlock[], folder: string): Script {
  const lines = ['set -eE', 'kept=() drains=()', STOP, `cd '${join(folder, 'work')}'`];
  const commands: (ShownCommand & { place: string })[] = [];
  for (const [index, block] of blocks.entries()) {
    const { text } = block;
    const path = block.notes.get('file');
    if (block.notes.has('server stopped')) lines.push('stop_kept');
    if (path !== undefined) {
      writeFileSync(join(folder, `block-${index}`), `${text}\n`);
      lines.push(`mkdir -p "$(dirname "${path}")"; cp '${join(folder, `block-${index}`)}' "${path}"`);
    } else if (block.notes.has('keeps running')) {
      if (text.includes('\n')) throw new Error(`${block.place}: a command that keeps running is one line`);
      lines.push(KEEP.replace('COMMAND', () => text));
    } else if (block.language === 'console') {
      for (const shown of readCommands(block)) {
        lines.push('set +e', `echo "${MARK} begin ${commands.length}"`, shown.command);
        lines.push(`printf '\\n${MARK} end ${commands.length} %d\\n' $?`, 'set -e');
        commands.push({ ...shown, place: block.place });
      }
    } else if (isShell(block)) lines.push(`echo "${MARK} block ${block.place}"`, text);
  }
  return { text: `${lines.join('\n')}\nstop_kept\n`, commands };
}

// Reads the output until it names an address, then discards the rest, so that the program never waits for a reader.
const KEEP = `exec {reader}< <(exec COMMAND 2>> ../kept.log); kept+=($!)
while IFS= read -r -t 60 line <&$reader && echo "$line" && [[ $line != *http://* ]]; do :; done
[[ $line == *http://* ]] || { cat ../kept.log; exit 1; }
cat <&$reader > /dev/null & drains+=($!)`;

// A program has ended when nothing more comes of its output.
const STOP = `stop_kept() {
  for pid in "\${kept[@]}"; do kill "$pid"; done
  for pid in "\${drains[@]}"; do wait "$pid"; done
  kept=() drains=()
}`;

function readCommands({ text, place }: CodeBlock): ShownCommand[] {
  const commands: { command: string; output: string }[] = [];
  for (const line of text.split('\n')) {
    const last = commands.at(-1);
    if (line.startsWith('$ ')) commands.push({ command: line.slice(2), output: '' });
    else if (last === undefined) throw new Error(`${place}: a console block begins with "$ "`);
    else if (last.output === '' && last.command.endsWith('\\')) last.command += `\n${line}`;
    else last.output += `${line}\n`;
  }
  return commands;
}

async function runScript(
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<{ output: string; code: number | null }> {
  const unreachable = 'http://127.0.0.1:9';
  const child = spawn('bash', ['-c', 'exec bash page.sh 2>&1 < /dev/null'], {
    cwd: folder,
    env: {
      PATH: [join(folder, 'bin'), ...PROGRAM_FOLDERS].join(':'),
      HOME: join(folder, 'home'),
      PARLEY_DATA: join(folder, 'data'),
      LANG: 'C.UTF-8',
      http_proxy: unreachable,
      https_proxy: unreachable,
      no_proxy: '127.0.0.1,localhost',
      // Programs that behave like the engines, without a login or a network.
      PARLEY_CODEX_BIN: join(STAND_INS, 'codex'),
      PARLEY_CODEX_APP_SERVER_BIN: join(STAND_INS, 'codex-app-server-stand-in'),
      PARLEY_GEMINI_BIN: join(STAND_INS, 'gemini'),
      PARLEY_IFLOW_BIN: join(STAND_INS, 'iflow'),
      PARLEY_OPENCODE_BIN: join(STAND_INS, 'opencode'),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: PAGE_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  const pieces: Buffer[] = [];
  child.stdout.on('data', (piece: Buffer) => pieces.push(piece));
  const [code] = (await once(child, 'exit')) as [number | null];
  return { output: Buffer.concat(pieces).toString(), code };
}

function compareOutput(output: string, commands: Script['commands']): string[] {
  const differences: string[] = [];
  for (const [index, { place, command, output: shown }] of commands.entries()) {
    const ran = new RegExp(`^${MARK} begin ${index}\n([^]*?)\n${MARK} end ${index} (\\d+)$`, 'm').exec(output);
    if (ran === null) return [...differences, `${place}: did not get to: ${command}`];
    const [, actual = '', code] = ran;
    const allowed = exitCodesOf(command);
    if (!allowed.includes(Number(code)))
      differences.push(`${place}: $ ${command}\nended with code ${code}, not with ${allowed.join(' or ')}:\n${actual}`);
    else if (shown.trim() !== '' && !patternOf(shown).test(tidy(actual)))
      differences.push(`${place}: $ ${command}\nshows\n${tidy(shown)}\n--- but printed\n${tidy(actual)}`);
  }
  return differences;
}

// Code 3 means that the run waits for an answer, which is no failure in a conversation.
function exitCodesOf(command: string): number[] {
  const [, code] = /# exit code (\d+)\b/.exec(command) ?? [];
  return code === undefined ? [0, 3] : [Number(code)];
}

const tidy = (text: string): string => text.replace(/[ \t]+$/gm, '').replace(/^\n+|\n+$/g, '');

// `…` stands for any text within a line, and on a line of its own for any lines. The width of columns may differ.
function patternOf(shown: string): RegExp {
  const lines = tidy(shown).split('\n');
  const source = lines.map((line, at) => {
    const end = at === lines.length - 1 ? '' : '\n';
    if (line.trim() === '…') return end === '' ? '[^]*' : '(?:.*\n)*?';
    return (
      line
        .split('…')
        .map(escapeRegExp)
        .join('.*')
        .replaceAll(/(?<=\S) {2,}/g, ' {2,}') + end
    );
  });
  return new RegExp(`^${source.join('')}$`);
}

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// Every process that the page has started has the folder in its environment: as HOME, or in PATH.
function killProcesses(folder: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'utf8').includes(folder)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // The process has ended meanwhile, or belongs to somebody else.
    }
  }
}
