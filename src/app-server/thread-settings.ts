// The settings of a thread: its folder, its limits, and who approves. The last valid settings are sent each time in
// full: Codex would fill missing ones from its own settings, which may allow more. If either of two settings may be in
// force, the stricter one is used.
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
  // More precise than the mode; only a turn accepts it. Null: the mode is enough.
  readonly sandboxPolicy: SandboxPolicy | null;
  // The name of a profile, which replaces both.
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

// Returns the settings for a thread that is being opened: requested ones, then known ones; `cwd` if neither names a
// folder.
export function settingsToOpen(
  params: Partial<ThreadStartParams>,
  known: ThreadSettings | undefined,
  cwd: string,
): ThreadSettings {
  return {
    cwd: params.cwd ?? known?.cwd ?? cwd,
    approvalPolicy: params.approvalPolicy ?? known?.approvalPolicy ?? 'on-request',
    // Ignores the user's own settings: nothing is approved without a person unless the caller requests it.
    approvalsReviewer: params.approvalsReviewer ?? known?.approvalsReviewer ?? 'user',
    ...limitsOf(params.sandbox, params.permissions, known),
  };
}

// Only a turn accepts an exact policy; until then the thread is read-only.
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

// Settings of a turn also apply to later turns.
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

// Combines two settings if it is unknown which one is in force. The result is sent in full with the next turn, which
// makes it known again.
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

// These two policies are equal to a mode, whatever the settings contain.
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

// An unknown profile has the highest rank, because nothing is known about it. Read-only without network access has the
// lowest.
function rankOf({ sandboxPolicy, permissions }: Limits): number {
  if (isDeepStrictEqual(sandboxPolicy, READ_ONLY)) return 0;
  return RANKS[permissions ?? sandboxPolicy?.type ?? ''] ?? MOST;
}
