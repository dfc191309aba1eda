// The rules of `codex app-server` as a resident engine.
import { SANDBOX } from '../codex/command.js';
import { actionDigest } from '../action-digest.js';
import type { ResidentRules } from '../resident.js';
import { buildAnswer, carriesOver, describeAnswer } from './answers.js';
import { COMMAND_APPROVAL, FILE_CHANGE_APPROVAL } from './requests.js';

export const codexAppServerResident: ResidentRules = {
  // Names the agent; a run has only one.
  logs: { stdout: 'agents/main/runtime/events.jsonl', stderr: 'agents/main/runtime/stderr.log' },
  buildAnswer,
  stopsByAnswer: ({ message: { method } }) => method === COMMAND_APPROVAL || method === FILE_CHANGE_APPROVAL,
  describeAnswer,
  carriesOver,
  digest: (action, permission) => actionDigest(action, SANDBOX[permission]),
};
