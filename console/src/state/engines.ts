// What the server says of its engines and of how their output was read.
import type { EngineReport, ProfileTotals } from '../../../src/client/index.js';
import { client } from './server.js';

export type { EngineReport, ProfileTotals };

// It comes with Parley and needs nothing else.
export const REHEARSAL = 'rehearsal';

export async function loadEngines(): Promise<readonly EngineReport[]> {
  const { engines } = (await (await client.request('GET', '/v1/engines')).json()) as {
    engines: readonly EngineReport[];
  };
  return engines;
}

export async function loadProfiles(): Promise<readonly ProfileTotals[]> {
  const { profiles } = (await (await client.request('GET', '/v1/metrics/parsers')).json()) as {
    profiles: readonly ProfileTotals[];
  };
  return profiles;
}
