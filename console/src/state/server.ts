// The server of this page, and the state of the connection to it.
import { signal } from '@preact/signals';
import { t } from '../language/language.js';
import { createClient, ParleyError } from '../../../src/client/index.js';

export const client = createClient({ url: '' });

export type Connection =
  | { readonly state: 'connecting' | 'open' }
  | { readonly state: 'lost'; readonly since: number; readonly reason: string }
  | { readonly state: 'refused'; readonly reason: string };

export const connection = signal<Connection>({ state: 'connecting' });

// The signed-in user.
export const me = signal<{ readonly name: string; readonly role: 'viewer' | 'replier' | 'operator' } | null>(null);

export const mayAnswer = (): boolean => me.value !== null && me.value.role !== 'viewer';
export const mayOperate = (): boolean => me.value?.role === 'operator';

export function lost(error: ParleyError): void {
  if (connection.value.state !== 'lost') connection.value = { state: 'lost', since: Date.now(), reason: error.message };
}

export function open(): void {
  if (connection.value.state !== 'open') connection.value = { state: 'open' };
}

export function refused(error: unknown): void {
  connection.value = { state: 'refused', reason: messageOf(error) };
}

export function messageOf(error: unknown): string {
  // Browsers report the cause only in their own words.
  if (error instanceof ParleyError && error.code === 'UNREACHABLE') return t.unreachable;
  return error instanceof Error ? error.message : String(error);
}

export async function loadMe(): Promise<boolean> {
  try {
    me.value = (await (await client.request('GET', '/v1/me')).json()) as NonNullable<typeof me.value>;
    return true;
  } catch (error) {
    if (error instanceof ParleyError && error.status === 401) refused(error);
    else lost(error instanceof ParleyError ? error : new ParleyError('UNREACHABLE', messageOf(error)));
    return false;
  }
}
