// The composition root: the only file that touches the process's own streams, signals, clock and exit code.
import { availableParallelism, homedir, hostname, userInfo } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCli } from './cli/program.js';
import { EXIT, type Io, type Parent } from './cli/io.js';
import { systemClock } from './kernel/clock.js';
import { systemTimers } from './process/timers.js';

// A reader that has seen enough (`| head`) closes the pipe: that is no failure. A full disk is.
let brokenPipeCode: number = EXIT.ok;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.stderr.write(`parley: cannot write the output: ${error.message}\n`);
  process.exit(error.code === 'EPIPE' ? brokenPipeCode : EXIT.failed);
});
// Nobody listens: there is nothing left to say.
process.stderr.on('error', () => {});

const programs = dirname(fileURLToPath(import.meta.url));

const io: Io = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  clock: systemClock,
  timers: systemTimers,
  env: process.env,
  cwd: readCwd(),
  machine: {
    home: homedir(),
    userName: readUserName(),
    hostName: hostname(),
    platform: process.platform,
    arch: process.arch,
    pid: process.pid,
    cores: availableParallelism(),
    node: process.execPath,
    entry: process.argv[1] ?? '',
    programs,
  },
  terminal: {
    stdin: process.stdin.isTTY ?? false,
    stdout: process.stdout.isTTY ?? false,
    stderr: process.stderr.isTTY ?? false,
    columns: () => process.stdout.columns || 80,
    rows: () => process.stdout.rows || 24,
  },
  onSignal: (signal, handler) => {
    process.on(signal, handler);
    return () => void process.off(signal, handler);
  },
  holdTerminal,
  setBrokenPipeCode: (code) => {
    brokenPipeCode = code;
  },
  parent: openParent(),
};

try {
  process.exitCode = await runCli(process.argv.slice(2), io);
} catch (error) {
  // What the system refused needs a sentence, a defect of ours its stack.
  const refused = error instanceof Error && 'syscall' in error;
  process.stderr.write(refused ? `parley: ${error.message}\n` : `parley: internal error, please report it: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = EXIT.failed;
}

function holdTerminal(restore: () => void): () => void {
  const end = (signal: NodeJS.Signals): void => {
    restore();
    release();
    process.kill(process.pid, signal);
  };
  const signals = ['SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
  const release = (): void => {
    process.off('exit', restore);
    for (const signal of signals) process.off(signal, end);
  };
  process.on('exit', restore);
  for (const signal of signals) process.on(signal, end);
  return release;
}

// A folder that was deleted has no name; what is given as an absolute path still works.
function readCwd(): string {
  try {
    return process.cwd();
  } catch {
    return '/';
  }
}

// An account without a name still has a number.
function readUserName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

function openParent(): Parent | null {
  const send = process.send?.bind(process);
  if (!send) return null;
  return {
    send: (message) => new Promise((resolve) => void send(message, undefined, undefined, () => resolve())),
    disconnect: () => process.connected && process.disconnect?.(),
    gone: new Promise((resolve) => void process.once('disconnect', () => resolve())),
  };
}
