// Runs of a resident engine on its stand-in: an orchestrator whose processes and commands can be counted.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import type { Actor, InteractionRecord, RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, processesOf, type Bench } from './orchestrated.js';

export const ENGINE = 'codex-app-server';
export const ADA: Actor = { kind: 'user', name: 'ada' };

export interface ResidentBench extends Bench {
  readonly root: string;
  play(prompt: string, rest?: Partial<CreateRunRequest>): Promise<RunRecord>;
  waitUntilIdle(run: Pick<RunRecord, 'run_id'>): Promise<RunRecord>;
  pending(run: Pick<RunRecord, 'run_id'>): Promise<InteractionRecord>;
  reply(run: Pick<RunRecord, 'run_id'>, response: Json): Promise<RunRecord>;
  events(run: Pick<RunRecord, 'run_id'>): Promise<RaspEvent[]>;
  // The actions of the engine, over all processes of this bench.
  commands(): string[];
  pids(run: Pick<RunRecord, 'run_id'>): Promise<unknown[]>;
}

export async function openResidentBench(
  changes: NonNullable<Parameters<typeof openBench>[1]> & {
    readonly root?: string;
    readonly env?: Record<string, string>;
  } = {},
): Promise<ResidentBench> {
  const { root = createRoot(), env = {}, ...rest } = changes;
  const opened = await openBench(root, {
    ...rest,
    runtime: {
      environment: () => ({
        PATH: process.env['PATH'] ?? '',
        HOME: root,
        STAND_IN_LOG: join(root, 'starts.jsonl'),
        ...env,
      }),
      ...rest.runtime,
    },
  });
  const bench: ResidentBench = {
    ...opened,
    root,
    play: async (prompt, more = {}) =>
      bench.waitUntilIdle(
        await bench.orchestrator.create({ engine: ENGINE, prompt, execution_mode: 'interactive', ...more }),
      ),
    waitUntilIdle: async ({ run_id: runId }) => {
      await bench.orchestrator.waitUntilIdle(runId);
      return expectSound(bench, runId);
    },
    pending: async ({ run_id: runId }) => {
      const pending = await bench.data.store.loadPendingInteraction(runId);
      expect(pending).not.toBeNull();
      return pending as InteractionRecord;
    },
    reply: async (run, response) => {
      const { interaction_id: id } = await bench.pending(run);
      await bench.orchestrator.reply(run.run_id, { interaction_id: id, response }, ADA);
      return bench.waitUntilIdle(run);
    },
    events: async ({ run_id: runId }) => (await journalOf(bench, runId)).rasp,
    commands: () =>
      logged(root)
        .filter(({ event }) => event === 'command')
        .map(({ command }) => String(command)),
    pids: async (run) =>
      (await bench.events(run))
        .filter(({ event }) => event.type === 'lifecycle.process.spawned')
        .map(({ data }) => data['pid']),
  };
  return bench;
}

export async function withBench(
  work: (bench: ResidentBench) => Promise<void>,
  changes: Parameters<typeof openResidentBench>[0] = {},
): Promise<void> {
  const bench = await openResidentBench(changes);
  try {
    await work(bench);
  } finally {
    await bench.close();
  }
}

export const gone = (runId: string): Promise<void> =>
  vi.waitFor(() => expect(processesOf(runId)).toEqual([]), { timeout: 20_000 });

function logged(root: string): JsonObject[] {
  const path = join(root, 'starts.jsonl');
  return existsSync(path)
    ? readFileSync(path, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as JsonObject)
    : [];
}

export const dataOf = (events: readonly RaspEvent[], type: string): JsonObject[] =>
  events.filter(({ event }) => event.type === type).map(({ data }) => data as JsonObject);
