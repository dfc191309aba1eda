// The folder of an instance within the folder of a task.
import { mkdirSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { RecordingPaths } from '../process/recording.js';
import { AppServerError } from './app-server-error.js';

export interface AgentFolder {
  readonly path: string;
  readonly session: string;
  // The default home of the instance.
  readonly codexHome: string;
  readonly recording: RecordingPaths;
}

// An instance name is also a folder name.
const INSTANCE = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/;

export function openAgentFolder(taskDir: string, instance: string): AgentFolder {
  if (!INSTANCE.test(instance))
    throw new AppServerError(
      'bad_options',
      'an instance is named with up to 64 letters, digits, dots, dashes and underscores, not ' +
        `${JSON.stringify(instance)}`,
    );
  const made = join(resolve(taskDir), 'agents', instance);
  mkdirSync(join(made, 'runtime'), { recursive: true, mode: 0o700 });
  // Resolves links, so that an instance has one path.
  const path = realpathSync(made);
  const runtime = join(path, 'runtime');
  return {
    path,
    session: join(path, 'session.json'),
    codexHome: join(path, 'codex_home'),
    recording: {
      requests: join(runtime, 'requests.jsonl'),
      events: join(runtime, 'events.jsonl'),
      stderr: join(runtime, 'stderr.log'),
    },
  };
}
