// Where an instance keeps what is its own within the folder of a task.
import { mkdirSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AppServerError } from './app-server-error.js';

export interface AgentFolder {
  readonly path: string;
  readonly session: string;
  // Used unless another one is named.
  readonly codexHome: string;
  readonly recording: RecordingPaths;
}

export interface RecordingPaths {
  readonly requests: string;
  readonly events: string;
  readonly stderr: string;
}

// It becomes the name of a folder.
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
  // Whatever link led there: an instance has one name.
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
