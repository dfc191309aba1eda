// A Gemini session id as the CLI prints it. --resume also accepts an index or "latest": neither must ever pass as an
// id.
import type { HandleRules } from '../engine.js';

const SESSION = /^(?=.{8,128}$)(?!latest$)(?!\d+$)[A-Za-z0-9][A-Za-z0-9_-]*$/;

export const geminiHandle: HandleRules = {
  source: 'session_id in the init line or the body',
  accepts: (sessionId) => SESSION.test(sessionId),
};
