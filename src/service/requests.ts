// What several routes read out of a request in the same way.
import type { FastifyRequest } from 'fastify';
import { RequestError } from '../run/request-error.js';
import { errorEnvelope } from './schemas.js';

// Every route may refuse; the code tells why.
export const REFUSALS = { '4xx': errorEnvelope, '5xx': errorEnvelope } as const;

const KEY = 'idempotency-key';

// The client's key, from the body or the header; both only if they say the same.
export function keyOf({ headers }: FastifyRequest, given: string | undefined): string | undefined {
  const header = headers[KEY];
  if (header === undefined) return given;
  if (typeof header !== 'string' || header === '' || header.length > 200)
    throw new RequestError('INVALID_ARGUMENT', 'the header Idempotency-Key is empty or longer than 200 characters');
  if (given !== undefined && given !== header)
    throw new RequestError('INVALID_ARGUMENT', 'the header Idempotency-Key and the body name different keys');
  return header;
}

export function labelOf(text: string): { key: string; value: string } {
  const at = text.indexOf('=');
  return { key: text.slice(0, at), value: text.slice(at + 1) };
}

// Where a reader wants to go on: a browser that comes back says it in a header, which is later than its address.
export function cursorOf({ headers }: FastifyRequest, asked: number | undefined): { cursor: number; again: boolean } {
  const header = headers['last-event-id'];
  if (header === undefined || header === '') return { cursor: asked ?? 0, again: false };
  if (typeof header !== 'string' || !/^\d{1,15}$/.test(header))
    throw new RequestError(
      'INVALID_ARGUMENT',
      'the header Last-Event-ID takes the seq of an event, a whole number, not ' +
        `${JSON.stringify(String(header).slice(0, 80))}`,
    );
  return { cursor: Number(header), again: true };
}
