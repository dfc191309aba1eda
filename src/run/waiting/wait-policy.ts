// How a run waits for an answer. Two policies:
//
// - `resumable`: the session is stored, so the run needs no process while it waits. A resident process may be kept for
//   a while, and another process continues the session when it is gone.
// - `sticky_process`: the session exists in its process only (setting sessions.sticky, for engines that cannot resume
//   but can stay resident). The process is kept as long as the run waits. If it exits, the run fails; if nobody answers
//   before the deadline of the question, the process is ended.
//
// This folder is the only one that knows how a policy is stored (`sticky` in the spec of a run). Everything else asks
// for the policy of a run and reads what follows from it.
import { isObject } from '../../kernel/json.js';
import { NO_FACTS, type GuardFacts } from '../guards.js';
import type { EngineSessionHandle } from '../session-handle.js';
import { CHART, type Edge } from '../statechart.js';
import { STICKY_CHART } from './sticky-extension.js';

export interface InteractiveProfile {
  readonly kind: 'resumable' | 'sticky_process';
}

// The part of the spec of a run that says how it waits. Undefined: the profile was not recorded, and the run is
// resumable.
export interface WaitSpec {
  readonly sticky?: boolean | undefined;
}

export interface WaitPolicy {
  readonly profile: InteractiveProfile;
  // The session ends with the process.
  readonly needsProcess: boolean;
  readonly handleType: EngineSessionHandle['handle_type'];
  // The chart that the run follows.
  readonly chart: readonly Edge[];
  // The facts with which the loss of its process ends a waiting run, if the chart has an edge for it.
  readonly lostFacts: GuardFacts;
}

const RESUMABLE: WaitPolicy = {
  profile: { kind: 'resumable' },
  needsProcess: false,
  handleType: 'session_id',
  chart: CHART,
  lostFacts: NO_FACTS,
};

const STICKY: WaitPolicy = {
  profile: { kind: 'sticky_process' },
  needsProcess: true,
  handleType: 'process',
  chart: STICKY_CHART,
  lostFacts: { ...NO_FACTS, sticky: true },
};

export function waitPolicyOf({ sticky }: WaitSpec): WaitPolicy {
  return sticky ? STICKY : RESUMABLE;
}

// The profile that was recorded when the run was created; null if none was.
export function recordedProfile(spec: WaitSpec): InteractiveProfile | null {
  return spec.sticky === undefined ? null : waitPolicyOf(spec).profile;
}

// The rest of a spec, without the part that says how the run waits.
export function withoutWaiting<Spec extends WaitSpec>({ sticky: _sticky, ...rest }: Spec): Omit<Spec, 'sticky'> {
  return rest;
}

export interface WaitChoice {
  // The setting allows runs that need their process.
  readonly mayNeedProcess: boolean;
  // Whether the engine has shown that it can resume; null: not known yet.
  readonly resumes: boolean | null;
  readonly canStay: boolean;
}

// The policy of a new interactive run. No profile is recorded where the setting is off, where nothing is known about
// the engine, and where it can neither resume nor stay.
export function chooseWaiting({ mayNeedProcess, resumes, canStay }: WaitChoice): WaitSpec {
  if (!mayNeedProcess || resumes === null) return {};
  if (resumes) return { sticky: false };
  return canStay ? { sticky: true } : {};
}

export function isWaitSpec({ sticky }: { readonly sticky?: unknown }): boolean {
  return sticky === undefined || typeof sticky === 'boolean';
}

// Whether the first event of a run records the profile that its spec has.
export function agreesWithProfile(spec: WaitSpec, profile: { readonly kind?: unknown } | undefined): boolean {
  return spec.sticky === undefined || (profile?.kind === STICKY.profile.kind) === spec.sticky;
}

// Whether the first event of a run says that the run needs its process. The member comes from contract/sticky.json,
// which extends the schema of the event.
export function createdNeedsProcess(created: object): boolean {
  const profile = (created as { interactive_profile?: unknown }).interactive_profile;
  return isObject(profile) && profile.kind === STICKY.profile.kind;
}

export function isInProcess({ kind }: InteractiveProfile): boolean {
  return kind === STICKY.profile.kind;
}
