// Commands of the agent: real ones, through /bin/sh, each in its own session and process group as with the real CLIs.
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SHELL = '/bin/sh';
const ORPHAN_SECONDS = 300;

// Resolves when the shell has ended, without waiting for background processes. For this its output goes to an unlinked
// file, so that none is left: a pipe would stay open. With `dieWithUs` the whole group is killed when this process
// ends, even by SIGKILL; without it the command survives, as it does with Gemini and OpenCode.
export function runCommand(command, options) {
  return startCommand(command, options).ended;
}

// The same with a handle: `kill` ends the whole group, and the code is then -1.
export function startCommand(command, { dieWithUs, cwd = process.cwd() }) {
  const output = openUnnamed();
  const child = dieWithUs
    ? startGuarded(command, output, cwd)
    : spawn(SHELL, ['-c', command], { cwd, detached: true, stdio: ['ignore', output, output] });
  const ended = new Promise((resolve) => {
    const end = (code) => {
      const bytes = Buffer.alloc(fstatSync(output).size);
      readSync(output, bytes, 0, bytes.length, 0);
      closeSync(output);
      resolve({ text: bytes.toString(), code: code ?? -1 });
    };
    child.once('exit', end);
    // For a folder that does not exist.
    child.once('error', () => end(-1));
  });
  return { pid: child.pid, ended, kill: () => process.kill(-child.pid, 'SIGKILL') };
}

// As Codex prints a command: the words of its own call, quoted.
export function quoteCommand(command) {
  return `/bin/bash -lc ${/^[\w@%+=:,./-]+$/.test(command) ? command : `'${command.replaceAll("'", `'"'"'`)}'`}`;
}

function openUnnamed() {
  const file = join(tmpdir(), `stand-in-${process.pid}-${Date.now()}.out`);
  const fd = openSync(file, 'ax+');
  rmSync(file);
  return fd;
}

// The command starts only when its guard runs.
function startGuarded(command, output, cwd) {
  const child = spawn(SHELL, ['-c', 'read -r word || exit; exec "$0" -c "$1" < /dev/null', SHELL, command], {
    cwd,
    detached: true,
    stdio: ['pipe', output, output],
  });
  child.stdin.on('error', () => {});
  if (child.pid === undefined) return child;
  const guard = startGuard(child.pid);
  child.stdin.end('go\n');
  child.once('exit', () => guard.stdin.end('over\n'));
  return child;
}

// Waits for a line on its stdin. If it ends without one, the process at its other end has died.
function startGuard(group) {
  // Without our environment: it is not part of the turn and must not look like a leftover of it.
  const guard = spawn(SHELL, ['-c', `read -r word || kill -KILL -${group}`], {
    detached: true,
    env: {},
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.stdin.on('error', () => {});
  guard.unref();
  return guard;
}

// A shell that keeps our stdout open and outlives us. Its pid is also its group and its session.
export function leaveOrphan() {
  const child = spawn(SHELL, ['-c', `sleep ${ORPHAN_SECONDS}; :`], {
    detached: true,
    stdio: ['ignore', 'inherit', 'ignore'],
  });
  child.unref();
  return child.pid;
}
