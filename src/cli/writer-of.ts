// Describes this process as the writer of a data directory.
import { readStartTime } from '../process/process-table.js';
import type { Writer } from '../store/sqlite/data-dir.js';
import type { Io } from './io.js';

export function writerOf(io: Io): Writer {
  return { pid: io.machine.pid, start_time: readStartTime(io.machine.pid) };
}
