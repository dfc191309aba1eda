// The engines of the server, and how much of their output was recognized.
import type { EngineReport, ProfileTotals, NewRunDefaults } from '../../../src/client/index.js';
import { client } from './server.js';

export type { EngineReport, ProfileTotals, NewRunDefaults };

interface EngineList {
  readonly engines: readonly EngineReport[];
  readonly defaults: NewRunDefaults;
}

// The bundled scripted engine, which needs no installation.
export const REHEARSAL = 'rehearsal';

export async function loadEngines(): Promise<EngineList> {
  return (await (await client.request('GET', '/v1/engines')).json()) as EngineList;
}

export async function loadProfiles(): Promise<readonly ProfileTotals[]> {
  const { profiles } = (await (await client.request('GET', '/v1/metrics/parsers')).json()) as {
    profiles: readonly ProfileTotals[];
  };
  return profiles;
}
