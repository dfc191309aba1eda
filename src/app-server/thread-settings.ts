// With what a thread works: its folder, what it may do, and who is asked. What was in force last is given again each
// time, in full: Codex would fill up the rest from its settings, which may allow more. Where two things may be in
// force, the stricter counts.
import { isDeepStrictEqual } from 'node:util';
import { asObject, type Json } from '../kernel/json.js';
import type {
  ApprovalsReviewer,
  AskForApproval,
  SandboxMode,
  SandboxPolicy,
  ThreadStartParams,
  TurnStartParams,
} from './protocol.js';

export interface ThreadSettings {
  readonly cwd: string;
  readonly approvalPolicy: AskForApproval;
  readonly approvalsReviewer: ApprovalsReviewer;
  readonly sandbox: SandboxMode;
  // More exact than the mode; only a turn can be given it. Null: the mode says it all.
  readonly sandboxPolicy: SandboxPolicy | null;
  // The name of a profile, which counts instead of both.
  readonly permissions: string | null;
}

type Limits = Pick<ThreadSettings, 'sandbox' | 'sandboxPolicy' | 'permissions'>;

const MODES: readonly string[] = ['read-only', 'workspace-write', 'danger-full-access'] satisfies SandboxMode[];
const READ_ONLY: SandboxPolicy = { type: 'readOnly', networkAccess: false };
const NARROW: SandboxPolicy = {
  type: 'workspaceWrite',
  writableRoots: [],
  networkAccess: false,
  excludeTmpdirEnvVar: false,
  excludeSlashTmp: false,
};
const EXACT: Readonly<Record<SandboxMode, SandboxPolicy>> = {
  'read-only': READ_ONLY,
  'workspace-write': NARROW,
  'danger-full-access': { type: 'dangerFullAccess' },
};
const RANKS: Readonly<Record<string, number>> = { readOnly: 1, workspaceWrite: 2, ':read-only': 0, ':workspace': 2 };
const MOST = 3;

// Of a thread that is to be opened, from what is asked for and what is known of it; `cwd` where neither names a folder.
export function settingsToOpen(
  params: Partial<ThreadStartParams>,
  known: ThreadSettings | undefined,
  cwd: string,
): ThreadSettings {
  return {
    cwd: params.cwd ?? known?.cwd ?? cwd,
    approvalPolicy: params.approvalPolicy ?? known?.approvalPolicy ?? 'on-request',
    // Never what the user's own settings say: nothing is approved without a person unless the caller wants it.
    approvalsReviewer: params.approvalsReviewer ?? known?.approvalsReviewer ?? 'user',
    ...limitsOf(params.sandbox, params.permissions, known),
  };
}

// An exact policy waits for the turn; until then less is allowed.
export function paramsToOpen({
  cwd,
  approvalPolicy,
  approvalsReviewer,
  sandbox,
  sandboxPolicy,
  permissions,
}: ThreadSettings): Partial<ThreadStartParams> {
  const limits = permissions === null ? { sandbox: sandboxPolicy === null ? sandbox : 'read-only' } : { permissions };
  return { cwd, approvalPolicy, approvalsReviewer, ...limits };
}

// What is given for a turn counts for those after it.
export function settingsOfTurn(
  before: ThreadSettings,
  { cwd, approvalPolicy, approvalsReviewer, sandboxPolicy, permissions }: Partial<TurnStartParams>,
): ThreadSettings {
  return {
    cwd: cwd ?? before.cwd,
    approvalPolicy: approvalPolicy ?? before.approvalPolicy,
    approvalsReviewer: approvalsReviewer ?? before.approvalsReviewer,
    ...(sandboxPolicy == null ? limitsOf(undefined, permissions, before) : ofPolicy(sandboxPolicy)),
  };
}

export function paramsOfTurn({
  cwd,
  approvalPolicy,
  approvalsReviewer,
  sandboxPolicy,
  permissions,
}: ThreadSettings): Partial<TurnStartParams> {
  return {
    cwd,
    approvalPolicy,
    approvalsReviewer,
    ...(permissions === null ? {} : { permissions }),
    ...(sandboxPolicy === null ? {} : { sandboxPolicy }),
  };
}

// When it is not known which of the two is in force. Given in full at the next turn, so that it is known again.
export function stricterOf(before: ThreadSettings, after: ThreadSettings): ThreadSettings {
  if (isDeepStrictEqual(before, after)) return before;
  return {
    cwd: before.cwd,
    approvalPolicy: isDeepStrictEqual(before.approvalPolicy, after.approvalPolicy)
      ? before.approvalPolicy
      : 'untrusted',
    approvalsReviewer: before.approvalsReviewer === after.approvalsReviewer ? before.approvalsReviewer : 'user',
    ...stricterLimits(before, after),
  };
}

export function readSettings(value: Json): ThreadSettings | undefined {
  const {
    cwd,
    sandbox,
    approvalPolicy,
    approvalsReviewer = 'user',
    sandboxPolicy = null,
    permissions = null,
  } = asObject(value) ?? {};
  if (
    typeof cwd !== 'string' ||
    typeof sandbox !== 'string' ||
    !MODES.includes(sandbox) ||
    approvalPolicy === undefined
  )
    return undefined;
  if (
    typeof approvalsReviewer !== 'string' ||
    (sandboxPolicy !== null && !asObject(sandboxPolicy)) ||
    (permissions !== null && typeof permissions !== 'string')
  )
    return undefined;
  return { cwd, sandbox, approvalPolicy, approvalsReviewer, sandboxPolicy, permissions } as ThreadSettings;
}

function limitsOf(
  sandbox: SandboxMode | null | undefined,
  permissions: string | null | undefined,
  known: Limits | undefined,
): Limits {
  if (permissions != null) return { sandbox: 'read-only', sandboxPolicy: null, permissions };
  if (sandbox != null || !known) return { sandbox: sandbox ?? 'read-only', sandboxPolicy: null, permissions: null };
  return { sandbox: known.sandbox, sandboxPolicy: known.sandboxPolicy, permissions: known.permissions };
}

// Two policies are a mode each, whatever the settings say.
function ofPolicy(policy: SandboxPolicy): Limits {
  if (policy.type === 'dangerFullAccess')
    return { sandbox: 'danger-full-access', sandboxPolicy: null, permissions: null };
  if (isDeepStrictEqual(policy, READ_ONLY)) return { sandbox: 'read-only', sandboxPolicy: null, permissions: null };
  return {
    sandbox: policy.type === 'workspaceWrite' ? 'workspace-write' : 'read-only',
    sandboxPolicy: policy,
    permissions: null,
  };
}

function stricterLimits(before: Limits, after: Limits): Limits {
  const [mine, theirs] = [exactly(before), exactly(after)];
  if (isDeepStrictEqual(mine, theirs)) return mine;
  if (rankOf(mine) === rankOf(theirs)) return { sandbox: 'read-only', sandboxPolicy: READ_ONLY, permissions: null };
  return rankOf(mine) < rankOf(theirs) ? mine : theirs;
}

function exactly({ sandbox, sandboxPolicy, permissions }: Limits): Limits {
  return { sandbox, sandboxPolicy: permissions === null ? (sandboxPolicy ?? EXACT[sandbox]) : null, permissions };
}

// Of a profile that is not known, nothing is known; without the network one may do least.
function rankOf({ sandboxPolicy, permissions }: Limits): number {
  if (isDeepStrictEqual(sandboxPolicy, READ_ONLY)) return 0;
  return RANKS[permissions ?? sandboxPolicy?.type ?? ''] ?? MOST;
}
