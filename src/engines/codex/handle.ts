// A Codex thread id is a UUID. Anything else is dangerous: `resume` treats it as a name and silently starts a new
// thread.
import type { HandleRules } from '../engine.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const codexHandle: HandleRules = {
  source: 'thread.started.thread_id',
  accepts: (sessionId) => UUID.test(sessionId),
};
