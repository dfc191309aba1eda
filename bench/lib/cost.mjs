// What a process costs, read from /proc: processor time, memory, and the processes below it. All null where there is no
// /proc.
import { existsSync, readdirSync, readFileSync } from 'node:fs';

// Linux counts in hundredths of a second for every program, whatever its internal clock is.
const TICK_US = 10_000;

function read(path) {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return null;
  }
}

// Microseconds of processor time so far, without child processes.
export function cpuOf(pid) {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}

function kilobytes(path, name) {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(read(path) ?? '');
  return match ? Number(match[1]) / 1024 : null;
}

// MiB in use now.
export const memoryOf = (pid) => kilobytes(`/proc/${pid}/status`, 'VmRSS');

// The peak in MiB since the process started.
export const peakOf = (pid) => kilobytes(`/proc/${pid}/status`, 'VmHWM');

// MiB, with shared memory counted proportionally.
export const shareOf = (pid) => kilobytes(`/proc/${pid}/smaps_rollup`, 'Pss');

// The bytes that it has passed to the file system so far, whether they have reached the disk or not.
export function writtenOf(pid) {
  const match = /^write_bytes: (\d+)/m.exec(read(`/proc/${pid}/io`) ?? '');
  return match ? Number(match[1]) : null;
}

// The growth per item; null, not 0, if a value was not measured.
export function grown(before, after, count = 1) {
  return before === null || after === null ? null : (after - before) / count;
}

export function childrenOf(pid) {
  if (!existsSync('/proc')) return null;
  const rows = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      const stat = read(`/proc/${name}/stat`);
      return stat === null
        ? null
        : { pid: Number(name), parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) };
    })
    .filter((row) => row !== null);
  const pids = [pid];
  // Grows during the iteration.
  for (const parent of pids) for (const row of rows) if (row.parent === parent) pids.push(row.pid);
  return pids.slice(1);
}
