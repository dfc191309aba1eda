// What the question tool answers an agent. It carries the nonce of the turn, so that the answer in the engine's output
// tells to which turn the call belongs.
import type { Json } from '../kernel/json.js';

const NONCE = /Your question is recorded \(([^()\s]+)\)/;

export function writeReceipt(nonce: string): string {
  return `Your question is recorded (${nonce}). End your turn now; the answer comes as the next message.`;
}

// The nonce in the result of a call, in whatever shape an engine prints it; null: it has none.
export function readReceipt(result: Json | undefined): string | null {
  const text = typeof result === 'string' ? result : JSON.stringify(result ?? null);
  return NONCE.exec(text)?.[1] ?? null;
}
