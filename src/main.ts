// The composition root: the only file that touches the process's own streams, signals, clock and exit code.
import { availableParallelism, homedir, hostname, userInfo } from 'node:os';
import { dirname, isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCli } from './cli/program.js';
import { EXIT, type Io, type Parent } from './cli/io.js';
import { systemClock } from './kernel/clock.js';
import { redact } from './kernel/redact.js';
import { systemTimers } from './process/timers.js';
import { safeText } from './terminal/safe-text.js';

// A reader that has seen enough (`| head`) closes the pipe: that is no failure. A full disk is.
let brokenPipeCode: number = EXIT.ok;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.stderr.write(`parley: cannot write the output: ${error.message}\n`);
  process.exit(error.code === 'EPIPE' ? brokenPipeCode : EXIT.failed);
});
// Nobody listens: there is nothing left to say.
process.stderr.on('error', () => {});

// After a defect of ours nothing more is accepted, and the process ends soon, whatever becomes of the handler.
const CRASH_MS = 4000;
// The last resort, also where the event loop itself hangs; within the 5 s that are promised.
const CRASH_KILL_MS = 4700;
let crashHandler = async (error: unknown): Promise<void> => {
  process.stderr.write(explainCrash(error));
};
let hasCrashed = false;
process.on('uncaughtException', (error) => void crash(error));
process.on('unhandledRejection', (reason) => void crash(reason));

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
    home: readHome(),
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
  onCrash: (handler) => {
    crashHandler = handler;
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
  process.stderr.write(refused ? `parley: ${error.message}\n` : explainCrash(error));
  process.exitCode = EXIT.failed;
}

function explainCrash(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `parley: internal error, please report it: ${safeText(redact(text))}\n`;
}

async function crash(error: unknown): Promise<void> {
  if (hasCrashed) return;
  hasCrashed = true;
  startWatchdog();
  setTimeout(() => process.exit(EXIT.failed), CRASH_MS);
  try {
    await crashHandler(error);
  } finally {
    process.exit(EXIT.failed);
  }
}

// A thread of its own: it also ends a process whose event loop hangs.
function startWatchdog(): void {
  try {
    // Loaded only now, and at once: import() would wait for the event loop.
    const { Worker } = process.getBuiltinModule('node:worker_threads');
    const script = `setTimeout(() => process.kill(process.pid, 'SIGKILL'), ${CRASH_KILL_MS})`;
    const watchdog = new Worker(script, { eval: true, env: {}, execArgv: [], stdout: true, stderr: true });
    watchdog.on('error', () => {});
  } catch {
    // Without threads, the timer of this one has to do.
  }
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

// A folder that was deleted has no name. No other takes its place: an agent would work there.
function readCwd(): string | null {
  try {
    return process.cwd();
  } catch {
    return null;
  }
}

// An empty or relative HOME names no folder: then the home of the account.
function readHome(): string {
  const home = homedir();
  if (isAbsolute(home)) return home;
  try {
    return userInfo().homedir;
  } catch {
    return home;
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
