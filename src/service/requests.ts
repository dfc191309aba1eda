// Reads parts of requests that several routes share.
import type { FastifyRequest } from 'fastify';
import { refusal } from '../run/request-error.js';
import { errorEnvelope } from './schemas.js';

// Every route may refuse a request; the code is the reason.
export const REFUSALS = { '4xx': errorEnvelope, '5xx': errorEnvelope } as const;

const KEY = 'idempotency-key';

// Returns the idempotency key from the body or the header; if both are present they must be equal.
export function keyOf({ headers }: FastifyRequest, bodyKey: string | undefined): string | undefined {
  const header = headers[KEY];
  if (header === undefined) return bodyKey;
  if (typeof header !== 'string' || header === '' || header.length > 200) throw refusal('INVALID_ARGUMENT.key_header');
  if (bodyKey !== undefined && bodyKey !== header) throw refusal('INVALID_ARGUMENT.key_conflict');
  return header;
}

export function labelOf(text: string): { key: string; value: string } {
  const at = text.indexOf('=');
  return { key: text.slice(0, at), value: text.slice(at + 1) };
}

// Where a stream continues. A reconnecting browser sends it in a header, which is newer than the cursor in its URL.
export function cursorOf({ headers }: FastifyRequest, asked: number | undefined): { cursor: number; again: boolean } {
  const header = headers['last-event-id'];
  if (header === undefined || header === '') return { cursor: asked ?? 0, again: false };
  if (typeof header !== 'string' || !/^\d{1,15}$/.test(header))
    throw refusal('INVALID_ARGUMENT.last_event_id', { value: JSON.stringify(String(header).slice(0, 80)) });
  return { cursor: Number(header), again: true };
}
