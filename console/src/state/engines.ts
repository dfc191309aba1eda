// What the server says of its engines and of how their output was read.
import type { ProfileTotals } from '../../../src/client/index.js';
import { client } from './server.js';

export type { ProfileTotals };

export interface EngineReport {
  readonly name: string;
  readonly found: boolean;
  readonly program: string | null;
  readonly version: string | null;
  readonly proved_version: string;
  // Null: it needs none.
  readonly login: boolean | null;
  readonly advice: string | null;
}

// It comes with Parley and needs nothing else.
export const REHEARSAL = 'rehearsal';

export async function loadEngines(): Promise<readonly EngineReport[]> {
  const { engines } = (await (await client.request('GET', '/v1/engines')).json()) as { engines: readonly EngineReport[] };
  return engines;
}

export async function loadProfiles(): Promise<readonly ProfileTotals[]> {
  const { profiles } = (await (await client.request('GET', '/v1/metrics/parsers')).json()) as { profiles: readonly ProfileTotals[] };
  return profiles;
}
