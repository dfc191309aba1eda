// The ability to resume is probed once per program, never while a run is created; a probe without a result is no "yes".
import { chmodSync, existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { findEngine } from '../../src/engines/registry.js';
import { EngineKnowledge } from '../../src/machine/programs/engine-knowledge.js';
import { createEngineRuntime } from '../../src/machine/create-engine-runtime.js';
import { KnowledgeFile } from '../../src/machine/knowledge-file.js';
import { DEFAULT_SETTINGS } from '../../src/settings/settings.js';
import type { Clock } from '../../src/kernel/clock.js';
import { systemTimers } from '../../src/process/timers.js';
import { createRoot, expectSound, journalOf, openBench, type Bench } from '../support/orchestrated.js';

const CODEX = findEngine('codex');
const RESUMES = 'echo "Usage: codex exec resume [OPTIONS] [SESSION_ID] [PROMPT]"';

interface Place {
  readonly root: string;
  readonly bin: string;
  // How often the program was started for its help.
  calls(): number;
  knowledge(clock?: Clock): EngineKnowledge;
}

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

// A codex whose help is this shell script.
function createPlace(script: string): Place {
  const root = createRoot();
  const [bin, log] = [join(root, 'codex'), join(root, 'calls')];
  mkdirSync(join(root, 'data'));
  writeProgram(bin, `case "$1" in --version) echo "codex-cli 9.9.9";; *) echo x >> ${log}; ${script};; esac`);
  const machine = {
    user: { home: root, env: { PATH: process.env['PATH'], PARLEY_CODEX_BIN: bin } },
    node: process.execPath,
    programs: '',
    platform: 'none',
    pid: process.pid,
    askTool: [],
  };
  return {
    root,
    bin,
    calls: () => (existsSync(log) ? readFileSync(log, 'utf8').length / 2 : 0),
    knowledge: (clock = { now: () => 1_000_000 }) => {
      const knowledge = new EngineKnowledge({
        machine,
        settings: DEFAULT_SETTINGS,
        clock,
        timers: systemTimers,
        file: new KnowledgeFile(join(root, 'data')),
      });
      closing.push(() => knowledge.close());
      return knowledge;
    },
  };
}

function writeProgram(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

// Runs use the stand-in; the probe uses the program at this path.
async function openProbed(place: Place, knowledge: EngineKnowledge, sticky = false): Promise<Bench> {
  const bench = await openBench(place.root, {
    sticky,
    runtime: { knownResume: (engine) => knowledge.known(engine), probeResume: (engine) => knowledge.learn(engine) },
  });
  closing.push(() => bench.close());
  return bench;
}

async function warningsOf(bench: Bench, runId: string): Promise<unknown[]> {
  const { rasp } = await journalOf(bench, runId);
  return rasp.filter(({ data }) => data['code'] === 'RESUME_NOT_PROVED').map(({ data }) => data['message']);
}

describe('stored facts about a program', () => {
  test('one probe serves all callers, and the next process reads its result from the data directory', async () => {
    const place = createPlace(RESUMES);
    const knowledge = place.knowledge();
    expect(knowledge.known(CODEX)).toBeNull();
    const knownProbes = await Promise.all([knowledge.learn(CODEX), knowledge.learn(CODEX), knowledge.learn(CODEX)]);
    expect(knownProbes).toEqual(Array.from({ length: 3 }, () => ({ version: '9.9.9', resumes: true, problem: null })));
    await knowledge.close();
    expect(place.calls()).toBe(1);
    expect(place.knowledge().known(CODEX)).toEqual(knownProbes[0]);
  });

  test('a program that was changed is probed again', async () => {
    const place = createPlace(RESUMES);
    const knowledge = place.knowledge();
    await knowledge.learn(CODEX);
    utimesSync(place.bin, 1, 1);
    expect(knowledge.known(CODEX)).toBeNull();
    writeProgram(place.bin, 'echo no help');
    expect(await knowledge.learn(CODEX)).toMatchObject({
      resumes: false,
      problem: expect.stringContaining('does not show how'),
    });
  });

  test.each([
    ['fails', 'exit 3', 'ended with code 3'],
    ['crashes', 'kill -SEGV $$', 'ended with SIGSEGV'],
    ['hangs', 'exec sleep 1000', 'does not answer within 5 s'],
    ['prints without end', 'exec yes', 'prints without end'],
  ])('a probe that %s is no proof, is not stored, and is tried again later', async (_how, script, problem) => {
    const place = createPlace(script);
    let now = 1_000_000;
    const knowledge = place.knowledge({ now: () => now });
    expect(await knowledge.learn(CODEX)).toMatchObject({ resumes: false, problem: expect.stringContaining(problem) });
    expect(knowledge.known(CODEX)).toMatchObject({ resumes: false });
    await knowledge.close();
    expect(place.knowledge().known(CODEX)).toBeNull();
    now += 10 * 60 * 1000;
    expect(knowledge.known(CODEX)).toBeNull();
  });

  test.each(['not JSON', '[]', '{"programs":7}', '{"programs":{"x":{"resumes":"yes"}}}', ' '.repeat(300_000)])(
    'a damaged engines.json counts as empty',
    async (content) => {
      const place = createPlace(RESUMES);
      writeFileSync(join(place.root, 'data', 'engines.json'), content);
      const knowledge = place.knowledge();
      expect(knowledge.known(CODEX)).toBeNull();
      expect(await knowledge.learn(CODEX)).toMatchObject({ resumes: true });
    },
  );

  test('a bundled engine needs no probe', async () => {
    const runtime = createEngineRuntime(
      {
        user: { home: '/', env: {} },
        node: process.execPath,
        programs: '/nowhere',
        platform: 'none',
        pid: 1,
        askTool: [],
      },
      DEFAULT_SETTINGS,
      { clock: { now: () => 0 }, timers: systemTimers },
    );
    expect(runtime.knownResume?.(findEngine('rehearsal'))).toMatchObject({ resumes: true });
  });
});

describe('a run', () => {
  test.each([false, true])(
    'starts with a diagnostic where the probe fails (sessions.sticky %s), and may still wait',
    async (sticky) => {
      const place = createPlace('exit 3');
      const bench = await openProbed(place, place.knowledge(), sticky);
      const { run_id: id } = await bench.orchestrator.create({
        engine: 'codex',
        prompt: '[[ask Which?|A|B]]',
        execution_mode: 'interactive',
      });
      await bench.orchestrator.waitUntilIdle(id);
      expect((await expectSound(bench, id)).status).toBe('waiting_user');
      expect(await warningsOf(bench, id)).toEqual([expect.stringContaining('ended with code 3')]);
      const { rasp } = await journalOf(bench, id);
      expect(rasp[0]?.data).not.toHaveProperty('interactive_profile');
    },
  );

  test('has no diagnostic where the probe passes, and none in auto mode', async () => {
    for (const [script, mode] of [
      [RESUMES, 'interactive'],
      ['exit 3', 'auto'],
    ] as const) {
      const place = createPlace(script);
      const bench = await openProbed(place, place.knowledge());
      const { run_id: id } = await bench.orchestrator.create({
        engine: 'codex',
        prompt: '[[done 1]]',
        execution_mode: mode,
      });
      await bench.orchestrator.waitUntilIdle(id);
      expect(await warningsOf(bench, id)).toEqual([]);
    }
  });

  // A probe that never ends: creation cannot have waited for it.
  test('is created without waiting for its probe', async () => {
    const bench = await openBench(createRoot(), {
      settings: { runsTurns: false },
      runtime: { knownResume: () => null, probeResume: () => new Promise(() => {}) },
    });
    closing.push(() => bench.close());
    const run = await bench.orchestrator.create({ engine: 'codex', prompt: 'x', execution_mode: 'interactive' });
    expect(run.status).toBe('queued');
  });

  test('records that a probe has not ended in time, and starts', async () => {
    const bench = await openBench(createRoot(), {
      runtime: { knownResume: () => null, probeResume: () => new Promise(() => {}) },
    });
    closing.push(() => bench.close());
    const { run_id: id } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[done 1]]',
      execution_mode: 'interactive',
    });
    expect((await bench.orchestrator.waitUntilIdle(id)).status).toBe('succeeded');
    expect(await warningsOf(bench, id)).toEqual([expect.stringContaining('has not ended within 3 s')]);
  });
});
