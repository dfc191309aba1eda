// An iFlow session id as its block prints it: session-<uuid>. The conversation-id changes with every process.
import type { HandleRules } from '../engine.js';

const SESSION = /^session-[A-Za-z0-9][A-Za-z0-9-]{7,}$/;

export const iflowHandle: HandleRules = {
  source: 'session-id in <Execution Info>',
  accepts: (sessionId) => SESSION.test(sessionId),
};
