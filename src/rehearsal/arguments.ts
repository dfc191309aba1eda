// The command line of the rehearsal. Strict: what it does not know it refuses.
import { parseArgs } from 'node:util';

const PERMISSIONS = ['read-only', 'workspace-write', 'full'] as const;

export interface Call {
  // The session to continue; without it a new one is made.
  readonly resume: string | undefined;
  readonly newSession: string | undefined;
  readonly permission: (typeof PERMISSIONS)[number];
  readonly model: string | undefined;
}

export type Arguments =
  | { readonly type: 'turn'; readonly call: Call }
  | { readonly type: 'version' }
  | { readonly type: 'wrong'; readonly problem: string };

export const USAGE =
  'usage: rehearsal [--session ID | --new-session ID] [--permission read-only|workspace-write|full] [--model ' +
  'NAME] < PROMPT';

export function parseArguments(argv: readonly string[]): Arguments {
  const read = readOptions(argv);
  if ('problem' in read) return { type: 'wrong', problem: read.problem };
  if (read.version) return { type: 'version' };
  const permission = PERMISSIONS.find((known) => known === (read.permission ?? 'workspace-write'));
  if (!permission) return { type: 'wrong', problem: `there is no permission "${read.permission}"` };
  if (read.session !== undefined && read['new-session'] !== undefined)
    return { type: 'wrong', problem: 'a session is either continued or new' };
  return {
    type: 'turn',
    call: { resume: read.session, newSession: read['new-session'], permission, model: read.model },
  };
}

function readOptions(argv: readonly string[]) {
  const text = { type: 'string' } as const;
  try {
    return parseArgs({
      args: [...argv],
      options: { session: text, 'new-session': text, permission: text, model: text, version: { type: 'boolean' } },
    }).values;
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}
