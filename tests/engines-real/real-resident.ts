// Runs of the resident engine on the real Codex: their stored data, the cost of their processes, the effects of their
// commands.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createTurnParser, findEngine } from '../../src/engines/registry.js';
import { newMemory } from '../../src/engines/turn-parser.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { endsIn, logsOf, LOG_BEGIN } from '../../src/journal/turn-logs.js';
import type { RaspEvent, StreamName } from '../../src/rasp/event.js';
import { eventOf } from '../support/parse.js';
import { processesOf } from '../support/orchestrated.js';
import { openRealBench, type BenchOptions, type RealBench } from './real-bench.js';

export const ENGINE = 'codex-app-server';
// A command that asks for permission causes a question only if the agent does not have full access.
export const ASKS = { execution_mode: 'interactive', permission: 'workspace-write' } as const;

export function openResidents(options: Omit<BenchOptions, 'runsOn'> = {}): Promise<RealBench> {
  return openRealBench('codex', { ...options, runsOn: ENGINE });
}

export const of = (events: readonly RaspEvent[], type: string): RaspEvent[] =>
  events.filter(({ event }) => event.type === type);
export const dataOf = (events: readonly RaspEvent[], type: string): JsonObject[] =>
  of(events, type).map(({ data }) => data);

export const spawnedIn = (events: readonly RaspEvent[]): unknown[] =>
  dataOf(events, 'lifecycle.process.spawned').map(({ pid }) => pid);

export function readLog(dataDir: string, runId: string, stream: StreamName = 'stdout'): Buffer {
  const path = logsOf(findEngine(ENGINE), runFolder(dataDir, runId), 1)[stream];
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
}

// The output of commands; none before the first.
export function linesIn(folder: string, name: string): string[] {
  const path = join(folder, name);
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
}

// Reads the log again, slice by slice as the turns ended, and expects the stored events.
export function expectSameParsed(dataDir: string, runId: string, events: readonly RaspEvent[]): void {
  const engine = findEngine(ENGINE);
  const logs = { stdout: readLog(dataDir, runId), stderr: readLog(dataDir, runId, 'stderr') };
  const memory = newMemory();
  const again: RaspEvent[] = [];
  let at = LOG_BEGIN;
  for (const event of events) {
    const ends = endsIn(event);
    if (!ends) continue;
    const version = event.event.type === 'lifecycle.turn.ended' ? versionIn(events, event.attempt_number) : undefined;
    const parser = createTurnParser(engine, version, { at, memory });
    const drafts = [
      ...parser.push('stdout', logs.stdout.subarray(at.stdout, ends.stdout)),
      ...parser.push('stderr', logs.stderr.subarray(at.stderr, ends.stderr)),
      ...parser.finish(),
    ];
    again.push(...drafts.map((draft) => eventOf(draft, 1, ENGINE, event.attempt_number)));
    at = ends;
  }
  const stored = events.filter(({ source }) => source.parser === engine.profile);
  expect(stored.length).toBeGreaterThan(0);
  expect(again.map(comparable)).toEqual(stored.map(comparable));
}

const comparable = ({ event, data, raw_ref, attempt_number, correlation }: RaspEvent) => ({
  type: event.type,
  data,
  raw_ref,
  attempt_number,
  correlation,
});

function versionIn(events: readonly RaspEvent[], attempt: number): string | undefined {
  const version = of(events, 'lifecycle.turn.started').find((event) => event.attempt_number === attempt)?.data[
    'engine_version'
  ];
  return typeof version === 'string' ? version : undefined;
}

// Resolves as soon as no process of the run is left.
export async function expectNoProcess(runId: string): Promise<void> {
  await expect.poll(() => processesOf(runId), { timeout: 10_000 }).toEqual([]);
}

// The memory of all processes of a run, in MB.
export function memoryOf(runId: string): number {
  const kilobytes = processesOf(runId).map((pid) => Number(/^VmRSS:\s+(\d+)/m.exec(readStatus(pid))?.[1] ?? 0));
  return Math.round(kilobytes.reduce((sum, each) => sum + each, 0) / 1024);
}

function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

// The requests to the service, as text.
export const sentTo = ({ model }: Pick<RealBench, 'model'>): string => JSON.stringify(model.requests.at(-1)?.body);
