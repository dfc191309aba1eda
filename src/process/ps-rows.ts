// The process table of systems without /proc, from `ps`: start times in whole seconds, the process group instead of the
// session, and no marks.
import { execFileSync } from 'node:child_process';
import type { ProcessRow } from './proc-rows.js';

export function listPsRows(): ProcessRow[] {
  return parsePs(
    execFileSync('ps', ['-axo', 'pid=,ppid=,pgid=,stat=,lstart='], {
      encoding: 'utf8',
      env: { PATH: '/bin:/usr/bin', LC_ALL: 'C' },
      maxBuffer: 64 * 1024 * 1024,
    }),
  );
}

export function readPsRow(pid: number): ProcessRow | null {
  return listPsRows().find((row) => row.pid === pid) ?? null;
}

export function parsePs(output: string): ProcessRow[] {
  return [...output.matchAll(/^ *(\d+) +(\d+) +(\d+) +(\S+) +(.*?) *$/gm)]
    .filter(([, , , , state]) => !state?.startsWith('Z'))
    .map(([, pid, ppid, pgid, , started]) => ({
      pid: Number(pid),
      ppid: Number(ppid),
      session: Number(pgid),
      startTime: started ?? '',
    }));
}
