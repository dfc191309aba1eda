// The paths of a run's files in the data directory.
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { StreamName } from '../rasp/event.js';

export interface RunFolder {
  readonly path: string;
  readonly workspace: string;
  readonly home: string;
  attempt(number: number): AttemptFolder;
}

export interface AttemptFolder {
  readonly path: string;
  readonly logs: Readonly<Record<StreamName, string>>;
  readonly asks: string;
}

export function runFolder(dataDir: string, runId: string): RunFolder {
  const path = join(dataDir, 'runs', runId);
  return {
    path,
    workspace: join(path, 'workspace'),
    home: join(path, 'home'),
    attempt: (number) => {
      const attempt = join(path, 'attempts', String(number));
      return {
        path: attempt,
        logs: { stdout: join(attempt, 'stdout.log'), stderr: join(attempt, 'stderr.log') },
        asks: join(attempt, 'asks.jsonl'),
      };
    },
  };
}

// Returns the data directory that contains the home of a run. It may belong to another host.
export function dataDirOf(home: string): string {
  return dirname(dirname(dirname(home)));
}

// Readable by its owner only.
export function makeFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}
