// What a decision is bound to: the action, and the permission with which the agent runs.
import { createHash } from 'node:crypto';
import { canonicalText, type JsonObject } from '../kernel/json.js';

export function actionDigest(action: JsonObject, sandbox: string): string {
  return createHash('sha256').update(canonicalText({ action, sandbox })).digest('hex');
}
