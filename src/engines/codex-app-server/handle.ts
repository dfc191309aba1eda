// The id of a thread, as for `codex exec`.
import type { HandleRules } from '../engine.js';
import { codexHandle } from '../codex/handle.js';

export const codexAppServerHandle: HandleRules = { ...codexHandle, source: 'thread/start' };
