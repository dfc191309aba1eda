// The result that the question tool returns to an agent. It contains the nonce of the turn, so that the engine's output
// shows which turn a call belongs to.
import type { Json } from '../kernel/json.js';

const NONCE = /Your question is recorded \(([^()\s]+)\)/;

export function writeReceipt(nonce: string): string {
  return `Your question is recorded (${nonce}). End your turn now; the answer comes as the next message.`;
}

// Returns the nonce in the result of a call, in whatever form the engine prints it; null if there is none.
export function readReceipt(result: Json | undefined): string | null {
  const text = typeof result === 'string' ? result : JSON.stringify(result ?? null);
  return NONCE.exec(text)?.[1] ?? null;
}
