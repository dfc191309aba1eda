// A Claude Code session id is a UUID. `--resume` also accepts titles, which must never pass as an id.
import type { HandleRules } from '../engine.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const claudeHandle: HandleRules = {
  source: 'session_id of a system/init line',
  accepts: (sessionId) => UUID.test(sessionId),
};
