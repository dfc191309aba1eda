// Profile rehearsal_ndjson: the bundled rehearsal program, one event a line on stdout (src/rehearsal/voice.ts has them
// all). Success is its `end` line and no `failed` one. Questions and approvals are its own requests.
import { asCount, asInteger, asString, type Json, type JsonObject } from '../../kernel/json.js';
import type { RaspData } from '../../rasp/event.js';
import type { EngineFailure } from '../../run/evidence.js';
import { buildApproval, parseQuestion, type Question } from '../../run/interaction.js';
import { classifyFailure } from '../auth-failure.js';
import type { Emitter } from '../emitter.js';
import { drifted, readNdjsonLine, type Drift, type Rule } from '../ndjson.js';
import type { ParserReader } from '../turn-parser.js';

export const REHEARSAL_PROFILE = 'rehearsal_ndjson';

type ToolStatus = RaspData['tool.call.completed']['status'];

const SHELL = { name: 'shell', kind: 'command' } as const;
const WRITE = { name: 'write', kind: 'file_change' } as const;

export function createRehearsalReader(out: Emitter): ParserReader {
  let ended = false;
  let failure: EngineFailure | null = null;
  let lastMessage: string | null = null;
  const questions: Question[] = [];

  const rules = new Map<string, Rule>([
    ['session', session],
    ['delta', delta],
    ['message', message],
    ['tool_started', toolStarted],
    ['tool_ended', toolEnded],
    ['file', file],
    ['ask', ask],
    ['approve', approve],
    ['usage', usage],
    ['failed', failed],
    ['end', end],
  ]);

  function session(event: JsonObject): Drift | undefined {
    const id = asString(event.session_id);
    if (!id) return drifted('session_id');
    if (out.sessionId === null) out.bindSession(id, asString(event.model));
    else if (out.sessionId === id) out.emit('lifecycle.engine.progress', { phase: 'session' });
    else out.warn('SESSION_ID_CHANGED', `a second session line names ${id}`);
    return undefined;
  }

  function delta(event: JsonObject): Drift | undefined {
    const text = asString(event.text);
    if (text === undefined) return drifted('text');
    out.emitText('agent.message.delta', text, '"text":"', idOf(event));
    return undefined;
  }

  function message(event: JsonObject): Drift | undefined {
    const text = asString(event.text);
    if (text === undefined) return drifted('text');
    out.emitText('agent.message.final', text, '"text":"', idOf(event));
    lastMessage = text;
    return undefined;
  }

  function toolStarted(event: JsonObject): Drift | undefined {
    const command = asString(event.command);
    if (command === undefined) return drifted('command');
    out.emit('tool.call.started', { ...SHELL, input: { command } }, idOf(event));
    return undefined;
  }

  function toolEnded(event: JsonObject): Drift | undefined {
    const status = statusOf(event.status);
    if (!status) return drifted('status');
    out.emitToolCompleted(
      { ...SHELL, status, exit_code: asInteger(event.exit_code) },
      asString(event.output),
      '"output":"',
      idOf(event),
    );
    return undefined;
  }

  // Printed when the call has ended, so one line contains both its start and its end.
  function file(event: JsonObject): Drift | undefined {
    const path = asString(event.path);
    const status = statusOf(event.status);
    if (path === undefined || !status) return drifted(path === undefined ? 'path' : 'status');
    const id = idOf(event);
    out.emit('tool.call.started', { ...WRITE, input: { path } }, id);
    out.emit('tool.call.completed', { ...WRITE, status }, id);
    if (status === 'completed') out.emit('artifact.file.changed', { path, kind: 'unknown' }, id);
    return undefined;
  }

  function ask(event: JsonObject): Drift | undefined {
    if (asString(event.prompt) === undefined) return drifted('prompt');
    out.emit('lifecycle.engine.progress', { phase: 'question.asked' }, idOf(event));
    questions.push(parseQuestion(event, 'native'));
    return undefined;
  }

  function approve(event: JsonObject): Drift | undefined {
    const command = asString(event.command);
    if (command === undefined) return drifted('command');
    out.emit('lifecycle.engine.progress', { phase: 'approval.asked' }, idOf(event));
    questions.push(buildApproval(`May this command be run?\n${command}`));
    return undefined;
  }

  function usage(event: JsonObject): Drift | undefined {
    const input_tokens = asCount(event.input_tokens);
    const output_tokens = asCount(event.output_tokens);
    if (input_tokens === undefined || output_tokens === undefined)
      return drifted(input_tokens === undefined ? 'input_tokens' : 'output_tokens');
    out.emit('agent.usage', { scope: 'turn', input_tokens, output_tokens });
    return undefined;
  }

  function failed(event: JsonObject): Drift | undefined {
    const reason = asString(event.message);
    // Even in an unknown form it means that the turn failed.
    failure = classifyFailure(reason ?? 'the turn failed');
    if (reason === undefined) return drifted('message');
    out.emit('diagnostic.engine.error', { message: reason, terminal: true });
    return undefined;
  }

  function end(): undefined {
    ended = true;
    out.emit('lifecycle.engine.progress', { phase: 'turn.ended' });
  }

  return {
    stdoutLine: (line, terminated) => readNdjsonLine(out, rules, line, terminated),
    finish: () => {},
    evidence: () => ({
      success: ended && failure === null,
      failure,
      unfinished: ended ? null : 'NO_TURN_END',
      questions,
      lastMessage,
    }),
  };
}

function idOf(event: JsonObject): string | null {
  return asString(event.id) ?? null;
}

function statusOf(value: Json | undefined): ToolStatus | undefined {
  return value === 'completed' || value === 'declined' ? value : undefined;
}
