// A thread: its settings, its turns, and the rest of its script. Stored from its first turn on (a fork at once) in an
// append-only file, so that it outlives the process; without resume it is only in memory.
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findRollout, listRollouts, newId, newRollout, SESSIONS } from '../codex-threads.mjs';

export const VERSION = '0.166.0';
const PREVIEW_CHARS = 200;
const canResume = process.env.STAND_IN_RESUME !== 'no';
const seconds = () => Math.floor(Date.now() / 1000);

const POLICIES = {
  'read-only': { type: 'readOnly', networkAccess: false },
  'workspace-write': {
    type: 'workspaceWrite',
    writableRoots: [],
    networkAccess: false,
    excludeTmpdirEnvVar: false,
    excludeSlashTmp: false,
  },
  'danger-full-access': { type: 'dangerFullAccess' },
};

export class Thread {
  status = { type: 'idle' };
  turns = [];
  // Steps for the next turn.
  kept = [];
  // The approvals that were unanswered when the turn was interrupted; [] otherwise.
  cut = [];
  // The approvals for the session, which is this process.
  accepted = new Set();
  commands = new Set();
  usage = 0;
  active = null;
  settings;
  #calls = new Set();
  #stored = false;

  constructor(
    { id = newId(), forkedFromId = null, createdAt = seconds(), path, originator, ephemeral = false },
    settings,
  ) {
    this.id = id;
    this.forkedFromId = forkedFromId;
    this.createdAt = createdAt;
    this.updatedAt = createdAt;
    this.originator = originator;
    this.ephemeral = ephemeral;
    this.path = path ?? join(SESSIONS, newRollout(id));
    this.settings = settings;
  }

  // Undefined when there is none.
  static find(id) {
    const path = canResume ? findRollout(id) : undefined;
    return path && Thread.read(path);
  }

  static listStored() {
    return canResume ? listRollouts().map((path) => Thread.read(path)) : [];
  }

  static read(path) {
    // The last line may be incomplete.
    const lines = readFileSync(path, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    const thread = new Thread({ ...lines[0].payload.meta, path }, lines[0].payload.settings);
    thread.#stored = true;
    for (const { type, payload } of lines) thread.#replay(type, payload);
    for (const turn of thread.turns) if (turn.status === 'inProgress') turn.status = 'interrupted';
    return thread;
  }

  // Whether another process would find it.
  get isStored() {
    return this.#stored && canResume;
  }

  get preview() {
    const first = this.turns[0]?.items.find(({ type }) => type === 'userMessage');
    return (first?.content[0]?.text ?? '').slice(0, PREVIEW_CHARS);
  }

  // The unfinished turn of a process that died.
  abortCalls() {
    for (const id of this.#calls) this.called(id, 'aborted');
  }

  fork({ lastTurnId }, settings, originator) {
    const forked = new Thread({ forkedFromId: this.id, originator }, settings);
    const at = lastTurnId == null ? this.turns.length - 1 : this.turns.findIndex(({ id }) => id === lastTurnId);
    if (at < 0) return undefined;
    forked.store();
    forked.usage = this.usage;
    for (const turn of this.turns.slice(0, at + 1)) {
      forked.begin({ ...turn, items: [] });
      for (const item of turn.items) forked.add(turn.id, item);
      forked.end({ ...turn, status: turn.status === 'inProgress' ? 'interrupted' : turn.status });
    }
    // The rest of the script belongs to the whole thread.
    if (at === this.turns.length - 1) {
      forked.keep(this.kept);
      forked.cutOff(this.cut);
    }
    return forked;
  }

  store() {
    if (this.#stored || this.ephemeral) return;
    this.#stored = true;
    const { id, forkedFromId, createdAt, originator } = this;
    if (canResume) mkdirSync(dirname(this.path), { recursive: true });
    this.#append('session_meta', { meta: { id, forkedFromId, createdAt, originator }, settings: this.settings });
  }

  set(changes) {
    this.#change('settings', changes);
  }

  begin(turn) {
    this.#change('turn_begun', turn);
  }

  add(turnId, item) {
    this.#change('item', { turnId, item });
  }

  end({ id, status, error, completedAt, durationMs }) {
    this.#change('turn_ended', { end: { id, status, error, completedAt, durationMs }, usage: this.usage });
  }

  keep(steps) {
    if (steps.length > 0 || this.kept.length > 0) this.#change('kept', steps);
  }

  cutOff(steps) {
    if (steps.length > 0 || this.cut.length > 0) this.#change('cut', steps);
  }

  // The text that the model receives.
  call(id, name, parameters) {
    this.#change('response_item', { type: 'function_call', name, arguments: JSON.stringify(parameters), call_id: id });
  }

  called(id, output) {
    this.#change('response_item', { type: 'function_call_output', call_id: id, output });
  }

  toWire(isLoaded, turns = []) {
    const { cwd, model, modelProvider } = this.settings;
    return {
      id: this.id,
      environments: isLoaded ? [{ environmentId: 'local', cwd, runtimeWorkspaceRoots: [cwd] }] : null,
      extra: null,
      sessionId: this.id,
      forkedFromId: this.forkedFromId,
      parentThreadId: null,
      preview: this.preview,
      ephemeral: this.ephemeral,
      section: null,
      sectionEnteredAt: null,
      projectId: null,
      historyMode: 'paginated',
      modelProvider,
      model,
      reasoningEffort: null,
      createdAt: this.createdAt,
      updatedAt: this.updatedAt,
      recencyAt: this.updatedAt,
      status: isLoaded ? this.status : { type: 'notLoaded' },
      path: this.ephemeral ? null : this.path,
      cwd,
      cliVersion: VERSION,
      originator: this.originator,
      source: 'vscode',
      canAcceptDirectInput: isLoaded ? true : null,
      threadSource: null,
      agentNickname: null,
      agentRole: null,
      gitInfo: null,
      name: null,
      daybreakEnabled: null,
      turns,
    };
  }

  // The response to opening a thread.
  toOpened(turns) {
    const { cwd, model, modelProvider, approvalPolicy, approvalsReviewer, sandbox } = this.settings;
    return {
      thread: this.toWire(true, turns),
      model,
      modelProvider,
      serviceTier: null,
      disabledPluginIds: [],
      cwd,
      runtimeWorkspaceRoots: [cwd],
      instructionSources: [],
      approvalPolicy,
      approvalsReviewer,
      sandbox,
      activePermissionProfile: null,
      reasoningEffort: null,
      multiAgentMode: 'explicitRequestOnly',
    };
  }

  #change(type, payload) {
    this.#replay(type, payload);
    this.updatedAt = seconds();
    if (this.#stored) this.#append(type, payload);
  }

  #replay(type, payload) {
    const turnOf = (id) => this.turns.find((turn) => turn.id === id);
    if (type === 'settings') this.settings = { ...this.settings, ...payload };
    if (type === 'turn_begun') this.turns.push({ ...payload, items: [] });
    if (type === 'item') turnOf(payload.turnId).items.push(payload.item);
    if (type === 'turn_ended') {
      Object.assign(turnOf(payload.end.id), payload.end);
      this.usage = payload.usage;
    }
    if (type === 'kept') this.kept = payload;
    if (type === 'cut') this.cut = payload;
    if (type !== 'response_item') return;
    if (payload.type === 'function_call') this.#calls.add(payload.call_id);
    else this.#calls.delete(payload.call_id);
  }

  #append(type, payload) {
    if (canResume)
      appendFileSync(this.path, `${JSON.stringify({ timestamp: new Date().toISOString(), type, payload })}\n`);
  }
}

// Combines the client's request with stored settings; like the real one, it does not restore a sandbox with write
// access.
export function settingsOf(params, known) {
  const sandbox =
    params.sandbox == null
      ? known?.sandbox.type === 'workspaceWrite'
        ? null
        : known?.sandbox
      : POLICIES[params.sandbox];
  return {
    cwd: params.cwd ?? known?.cwd ?? process.cwd(),
    model: params.model ?? known?.model ?? 'stand-in-model',
    modelProvider: params.modelProvider ?? known?.modelProvider ?? 'stand-in',
    approvalPolicy: params.approvalPolicy ?? known?.approvalPolicy ?? 'on-request',
    approvalsReviewer: params.approvalsReviewer ?? known?.approvalsReviewer ?? 'user',
    sandbox: sandbox ?? POLICIES['read-only'],
    dynamicTools: params.dynamicTools ?? known?.dynamicTools ?? [],
  };
}
