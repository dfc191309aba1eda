// Whether an engine may be used for a new run, and the two small helpers of requests: force and the key of an actor.
import { expect, test } from 'vitest';
import { actorKey } from '../../src/commands/actor-key.js';
import { checkEngine } from '../../src/commands/check-engine.js';
import { forceOf } from '../../src/commands/force-of.js';
import { findEngine } from '../../src/engines/registry.js';
import type { EngineRuntime } from '../../src/machine/engine-runtime.js';
import { singleHost } from '../../src/ownership/single-host.js';
import { refusal as requestRefusal } from '../../src/run/request-error.js';
import { refusal } from '../support/command-bench.js';

const MISSING = requestRefusal('ENGINE_NOT_INSTALLED.path', { program: 'codex', install: 'npm install' });
const engine = findEngine('codex');

type Explain = NonNullable<EngineRuntime['explainUnusable']>;

interface Situation {
  readonly isLocal?: boolean;
  // The engines that other hosts have.
  readonly elsewhere?: readonly string[];
}

function check(explainUnusable?: Explain, { isLocal = false, elsewhere = [] }: Situation = {}): Promise<void> {
  const { peers } = singleHost({ listQueued: async () => [], listRunIds: async () => [] });
  return checkEngine(
    {
      runtime: (explainUnusable ? { explainUnusable } : {}) as EngineRuntime,
      peers: { ...peers, hasEngine: async (name) => elsewhere.includes(name) },
    },
    { engine, model: 'gpt-5', isLocal },
  );
}

test('an engine without a known obstacle is accepted', async () => {
  await check();
  const calls: unknown[] = [];
  await check((...args) => {
    calls.push(args);
    return null;
  });
  expect(calls).toEqual([[engine, 'gpt-5']]);
});

test('an engine with a known obstacle is refused with its code, its message and the way out', async () => {
  expect(
    await refusal(
      check(() => MISSING),
      'ENGINE_NOT_INSTALLED',
    ),
  ).toBe('codex was not found on PATH (npm install). To create the run anyway: --force (over HTTP "force": true).');
  await refusal(
    check(() => requestRefusal('ENGINE_LOGGED_OUT', { engine: 'codex', time: 'now', login: 'codex login' })),
    'ENGINE_LOGGED_OUT',
  );
});

test('an engine that another host has is accepted, unless the run needs files of this host', async () => {
  await check(() => MISSING, { elsewhere: ['codex'] });
  await refusal(
    check(() => MISSING, { elsewhere: ['gemini'] }),
    'ENGINE_NOT_INSTALLED',
  );
  await refusal(
    check(() => MISSING, { isLocal: true, elsewhere: ['codex'] }),
    'ENGINE_NOT_INSTALLED',
  );
});

test('force is copied only if the caller set it', () => {
  expect([undefined, null, {}, { force: undefined }].map(forceOf)).toEqual([{}, {}, {}, {}]);
  expect([{ force: true }, { force: false }].map(forceOf)).toEqual([{ force: true }, { force: false }]);
});

test('two actors have the same key only if their kind and name are equal', () => {
  const actors = [
    { kind: 'token', name: 'ann' },
    { kind: 'token', name: 'bob' },
    { kind: 'system', name: 'ann' },
  ] as const;
  expect(new Set(actors.map(actorKey)).size).toBe(3);
  expect(actorKey({ kind: 'token', name: 'ann' })).toBe(actorKey(actors[0]));
});
