// Checks whether the process that registered itself as the writer of a data directory still runs.
import { readRow } from '../process/process-table.js';
import { readWriter, type Writer } from '../store/sqlite/data-dir.js';

// Compares the start time: a new process may have the same pid. A zombie does not count as alive.
export function isAlive({ pid, start_time: startTime }: Writer): boolean {
  return startTime !== undefined && readRow(pid)?.startTime === startTime;
}

// Whether any process writes to this data directory.
export function hasWriter(path: string): boolean {
  const writer = readWriter(path);
  return writer !== null && isAlive(writer);
}
