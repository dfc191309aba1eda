// An OpenCode session id begins with ses_. The CLI refuses a malformed one only after it has started.
import type { HandleRules } from '../engine.js';

const SESSION = /^ses_[A-Za-z0-9]+$/;

export const opencodeHandle: HandleRules = {
  source: 'sessionID on any line',
  accepts: (sessionId) => SESSION.test(sessionId),
};
