// A command on a real terminal, without a native module: util-linux `script` opens the pty. Tests wait for data, never
// for time; a wait that takes too long fails and shows the output so far. Open terminals are closed after the test.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { afterEachTest } from './hooks.js';

export interface PtyOptions {
  readonly cols?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  // How long a single wait may take.
  readonly limitMs?: number;
}

export interface Pty {
  // Everything so far, as the terminal received it: line ends are CR LF, and typed text is echoed.
  output(): string;
  write(text: string): void;
  // Searches only after the last match, so that the same prompt can be awaited twice.
  waitFor(pattern: RegExp | string): Promise<void>;
  // Ctrl-C, as typed.
  interrupt(): void;
  // The exit code; 128 and the signal if a signal ended it.
  readonly exit: Promise<number>;
  // The command and its process group; SIGKILL unless another signal is named.
  kill(signal?: 'SIGKILL' | 'SIGTERM' | 'SIGHUP'): void;
}

const LIMIT_MS = 15_000;
const open = new Set<Pty>();

afterEachTest(async () => {
  const left = [...open];
  for (const pty of left) pty.kill();
  await Promise.all(left.map((pty) => pty.exit));
});

export function openPty(argv: readonly string[], options: PtyOptions = {}): Pty {
  const { cols = 80, rows = 24, env = {}, cwd, limitMs = LIMIT_MS } = options;
  if (spawnSync('script', ['--version']).error)
    throw new Error(
      'the tests on a terminal need `script` (util-linux; on Debian in the package bsdutils, which is essential)',
    );
  // The shell prints its pid before it becomes the command: the pid is that of the terminal's session.
  const command = `echo $$ >&3; exec 3>&-; stty cols ${cols} rows ${rows}; exec ${argv.map(quote).join(' ')}`;
  const child = spawn('script', ['-qfec', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm-256color', LANG: 'C.UTF-8', ...env, SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  });
  return new ScriptPty(child, argv, limitMs);
}

class ScriptPty implements Pty {
  readonly exit: Promise<number>;
  readonly #child: ChildProcess;
  readonly #argv: readonly string[];
  readonly #limitMs: number;
  #output = '';
  #matched = 0;
  #pid: number | null = null;
  #ended = false;
  // Called whenever there is more output.
  readonly #watchers = new Set<() => void>();

  constructor(child: ChildProcess, argv: readonly string[], limitMs: number) {
    this.#child = child;
    this.#argv = argv;
    this.#limitMs = limitMs;
    const [stdin, stdout, stderr, pids] = child.stdio as [Writable, Readable, Readable, Readable, null];
    for (const stream of [stdout, stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
        this.#look();
      });
    }
    pids.setEncoding('utf8').on('data', (text: string) => (this.#pid = Number(text)));
    // Typing into a closed terminal does not fail the test.
    stdin.on('error', () => {});
    open.add(this);
    this.exit = new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => {
        this.#ended = true;
        open.delete(this);
        this.#look();
        resolve(code ?? 137);
      });
    });
  }

  output(): string {
    return this.#output;
  }

  write(text: string): void {
    this.#child.stdin?.write(text);
  }

  interrupt(): void {
    this.write('\u0003');
  }

  waitFor(pattern: RegExp | string): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (finish: () => void) => {
        clearTimeout(limit);
        this.#watchers.delete(look);
        finish();
      };
      const fail = (why: string) =>
        done(() =>
          reject(
            new Error(`${this.#argv.join(' ')}: ${why} before ${String(pattern)} came. The output:\n${this.#output}`),
          ),
        );
      const look = () => {
        const end = endOfMatch(this.#output.slice(this.#matched), pattern);
        if (end !== null)
          done(() => {
            this.#matched += end;
            resolve();
          });
        else if (this.#ended) fail('it ended');
      };
      const limit = setTimeout(() => fail(`${this.#limitMs} ms were over`), this.#limitMs);
      this.#watchers.add(look);
      look();
    });
  }

  // The command with its whole process group; `script` reaps it and ends.
  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    if (this.#ended) return;
    try {
      if (this.#pid === null) this.#child.kill(signal);
      else process.kill(-this.#pid, signal);
    } catch (error) {
      // It has just exited.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  #look(): void {
    for (const watcher of this.#watchers) watcher();
  }
}

function endOfMatch(text: string, pattern: RegExp | string): number | null {
  if (typeof pattern === 'string') {
    const at = text.indexOf(pattern);
    return at === -1 ? null : at + pattern.length;
  }
  const match = new RegExp(pattern.source, pattern.flags.replaceAll(/[gy]/g, '')).exec(text);
  return match === null ? null : match.index + match[0].length;
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
