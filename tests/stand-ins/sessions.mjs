// A session as an append-only file with one JSON object per line. It outlives its process. `kept` is the rest of a
// script, which runs when the session is continued.
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

export function createSession(file, { id, cwd, more = {} }) {
  mkdirSync(dirname(file), { recursive: true });
  const header = { type: 'session', sessionId: id, cwd, startTime: new Date().toISOString(), ...more };
  const session = new Session(file, header);
  session.append(header);
  return session;
}

// The session of that file, or undefined if there is none.
export function loadSession(file) {
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
  const header = lines.find(({ type }) => type === 'session');
  if (!header) return undefined;
  const session = new Session(file, header);
  session.turns = lines.filter(({ type }) => type === 'user').length;
  session.messages = lines.filter(({ type }) => type === 'user' || type === 'assistant').length;
  session.kept = lines.findLast(({ type }) => type === 'kept')?.steps ?? [];
  return session;
}

class Session {
  // Before this turn.
  turns = 0;
  messages = 0;
  kept = [];
  #file;

  constructor(file, header) {
    this.#file = file;
    this.header = header;
    this.id = header.sessionId;
    this.cwd = header.cwd;
  }

  append(line) {
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  keep(steps) {
    this.kept = steps;
    this.append({ type: 'kept', steps });
  }
}
