// Whether the process that wrote its name into a data directory is still there.
import { readRow } from '../process/process-table.js';
import { readWriter, type Writer } from '../store/sqlite/data-dir.js';

// A process that has the pid by chance is not the worker, nor is one that is dead and not collected yet.
export function isAlive({ pid, start_time: startTime }: Writer): boolean {
  return startTime !== undefined && readRow(pid)?.startTime === startTime;
}

// Somebody writes to this data directory.
export function hasWriter(path: string): boolean {
  const writer = readWriter(path);
  return writer !== null && isAlive(writer);
}
