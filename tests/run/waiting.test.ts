// How runs wait: the consequences of each policy, the policy of a new run, and the only files that may name sticky
// sessions.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RUN_ERRORS, STICKY_ERRORS } from '../../src/contract/error-codes.js';
import { CHART, step } from '../../src/run/statechart.js';
import { contractFor } from '../../src/run/waiting/run-contract.js';
import { STICKY_EDGES } from '../../src/run/waiting/sticky-extension.js';
import {
  agreesWithProfile,
  chooseWaiting,
  createdNeedsProcess,
  isInProcess,
  isWaitSpec,
  recordedProfile,
  waitPolicyOf,
  withoutWaiting,
} from '../../src/run/waiting/wait-policy.js';

const SRC = new URL('../../src', import.meta.url).pathname;

test.each([{}, { sticky: undefined }, { sticky: false }])('%j is resumable: it needs no process', (spec) => {
  const policy = waitPolicyOf(spec);
  expect(policy).toMatchObject({ profile: { kind: 'resumable' }, needsProcess: false, handleType: 'session_id' });
  expect(isInProcess(policy.profile)).toBe(false);
  // A lost process does not fail a waiting run.
  expect(step('waiting_user', 'turn.failed', policy.lostFacts, policy.chart).legal).toBe(false);
});

test('a sticky run needs its process, and fails with it', () => {
  const policy = waitPolicyOf({ sticky: true });
  expect(policy).toMatchObject({ profile: { kind: 'sticky_process' }, needsProcess: true, handleType: 'process' });
  expect(isInProcess(policy.profile)).toBe(true);
  expect(step('waiting_user', 'turn.failed', policy.lostFacts, policy.chart)).toMatchObject({
    legal: true,
    edge: { id: 'S01', to: 'failed' },
  });
});

test.each<[boolean, boolean | null, boolean, object]>([
  [false, false, true, {}],
  [false, true, true, {}],
  [true, null, true, {}],
  [true, true, false, { sticky: false }],
  [true, true, true, { sticky: false }],
  [true, false, true, { sticky: true }],
  [true, false, false, {}],
])('a run, with the setting %s, of an engine that resumes: %s, stays: %s, has %j', (mayNeedProcess, ...rest) => {
  const [resumes, canStay, spec] = rest;
  expect(chooseWaiting({ mayNeedProcess, resumes, canStay })).toEqual(spec);
});

describe('the stored spec', () => {
  test('records a profile only where one was chosen, and gives the rest without it', () => {
    expect([{}, { sticky: false }, { sticky: true }].map(recordedProfile)).toEqual([
      null,
      { kind: 'resumable' },
      { kind: 'sticky_process' },
    ]);
    expect(withoutWaiting({ sticky: true, cwd: '/w' })).toEqual({ cwd: '/w' });
  });

  test('is read only if it is a boolean or absent', () => {
    expect([{}, { sticky: true }, { sticky: 'yes' }, { sticky: null }].map(isWaitSpec)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  test('is compared with the profile in the first event', () => {
    const [resumable, sticky] = [{ kind: 'resumable' }, { kind: 'sticky_process' }];
    expect(agreesWithProfile({}, sticky)).toBe(true);
    expect([resumable, sticky, undefined].map((profile) => agreesWithProfile({ sticky: true }, profile))).toEqual([
      false,
      true,
      false,
    ]);
    expect([resumable, sticky, undefined].map((profile) => agreesWithProfile({ sticky: false }, profile))).toEqual([
      true,
      false,
      true,
    ]);
  });
});

test.each([
  [{ interactive_profile: { kind: 'sticky_process' } }, true],
  [{ interactive_profile: { kind: 'resumable' } }, false],
  [{ interactive_profile: null }, false],
  [{}, false],
])('the first event %j says whether the run needs its process: %s', (created, needsProcess) => {
  expect(createdNeedsProcess(created)).toBe(needsProcess);
});

test('the published contract has the extension only where the setting is on', () => {
  for (const contract of [contractFor(), contractFor({}), contractFor({ sticky: false })]) {
    expect(contract).toMatchObject({ edges: CHART, extraCodes: [], showsWaiting: false });
    expect(contract.runErrors.map(({ code }) => code)).toEqual(Object.keys(RUN_ERRORS));
  }
  const extended = contractFor({ sticky: true });
  expect(extended).toMatchObject({ extraCodes: Object.keys(STICKY_ERRORS), showsWaiting: true });
  expect(extended.edges).toEqual([...CHART, ...STICKY_EDGES]);
  expect(extended.runErrors.map(({ code }) => code)).toEqual([
    ...Object.keys(RUN_ERRORS),
    ...Object.keys(STICKY_ERRORS),
  ]);
});

// New code of this kind belongs in src/run/waiting. The other files name something public: the setting, the option of
// the command, the guard of the contract, the components of the API description.
test('sticky sessions are named in one folder, and where a public name requires it', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && /sticky/i.test(readFileSync(join(SRC, name), 'utf8')),
  );
  const outside = files.filter((name) => !/^(?:run\/waiting|contract)\//.test(name));
  // The settings may move to another folder.
  expect(outside.map((name) => name.replace(/^.*\/settings.*\.ts$/, 'settings')).toSorted()).toEqual([
    'cli/commands/other.ts',
    'cli/open-writer.ts',
    'run/guards.ts',
    'service/schemas.ts',
    'settings',
  ]);
});
