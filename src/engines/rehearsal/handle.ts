// A session id of the rehearsal is a UUID; it refuses anything else.
import type { HandleRules } from '../engine.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const rehearsalHandle: HandleRules = {
  source: 'session.session_id',
  accepts: (sessionId) => UUID.test(sessionId),
};
