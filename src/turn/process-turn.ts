// Runs a turn of an engine that has one process per turn: starts the process, records its output, and judges the turn
// after the exit.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineCommand } from '../engines/engine.js';
import { createTurnParser } from '../engines/registry.js';
import { redact } from '../kernel/redact.js';
import { startChild, type Child, type ChildEnd } from '../process/child.js';
import { LeftBehindError } from '../process/left-behind-error.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { TurnEvidence } from '../run/evidence.js';
import type { RunRecord } from '../store/store.js';
import { summariseParser } from './parser-summary.js';
import { prepareTurn } from './prepare-turn.js';
import { reportSilence } from './report-silence.js';
import { withoutProxy, type ToolGate } from './tool-gate.js';
import { hearAsks, type TurnAsk } from './turn-ask.js';
import { checkLease, failStart, commitTurn, stopElsewhere, judgeTurn, type TurnContext } from './turn-context.js';

const GRACE_MS = 3000;

export async function runProcessTurn(
  context: TurnContext,
  command: EngineCommand,
  ask: TurnAsk | null,
  gate: ToolGate | null = null,
): Promise<RunRecord> {
  const { deps, engine, options, control, writer, version } = context;
  const { run } = writer;
  const prepared = await prepareTurn(context, ask?.command ?? null);
  if ('refused' in prepared) return failStart(context, prepared.refused);
  const { attempt } = prepared;
  const parser = createTurnParser(engine, version);
  const env = { ...prepared.env, ...command.env, ...(gate ? withoutProxy(prepared.env) : {}) };
  writeCommand(attempt.path, command, env);
  if (command.file) writeFileSync(command.file.path, command.file.text, { mode: 0o600 });
  checkLease(context);
  const result = await startChild(
    {
      argv: command.argv,
      cwd: command.cwd,
      env,
      stdin: command.stdin,
      logs: attempt.logs,
      mark: `${run.run_id}/${run.attempt_number}`,
      turnTimeoutMs: options.turn_timeout_sec === null ? null : options.turn_timeout_sec * 1000,
      idleTimeoutMs: options.idle_timeout_sec * 1000,
      toolTimeoutMs: options.tool_timeout_sec * 1000,
      silenceNoticeMs: options.silence_notice_sec * 1000,
      graceMs: GRACE_MS,
    },
    {
      onChunk: (stream, chunk) => {
        const stored = writer.add(parser.push(stream, chunk));
        if (parser.runaway) control.stopRunaway();
        stopElsewhere(context, parser);
        return stored;
      },
      isToolRunning: () => parser.isToolRunning,
      onSilence: () => reportSilence(context, parser.isToolRunning),
    },
    deps.timers,
  );
  if (!result.started) return failStart(context, result.error);
  const { child } = result;
  control.attach(child);
  void writer.add([draft('lifecycle.process.spawned', { pid: child.pid, start_time: child.startTime })]);
  const { end, left } = await waitForExit(child);
  // A process that is left must not use a decision after the events of the turn are complete.
  await gate?.close();
  if (left) void writer.add([left]);
  void writer.add(parser.finish());
  await writer.close();
  const { evidence, remarks } = await hearAsks(engine, ask, parser.evidence());
  return commitTurn(
    context,
    await judgeTurn(context, {
      ...end,
      evidence: { ...evidence, questions: evidence.questions.map((question) => gate?.bind(question) ?? question) },
      stopped: gate?.stopped ?? false,
      remarks: [...remarks, ...crossCheck(command, evidence)],
      parser: summariseParser(parser.counts()),
    }),
  );
}

// Records the started command for people; only the names of environment variables, not their values.
export function writeCommand(
  folder: string,
  { argv, cwd, stdin }: EngineCommand,
  env: Readonly<Record<string, string>>,
): void {
  const record = {
    argv: argv.map(redact),
    cwd,
    stdin_bytes: stdin === null ? null : Buffer.byteLength(stdin),
    env: Object.keys(env).toSorted(),
  };
  writeFileSync(join(folder, 'command.json'), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
}

// A process counts as ended even if it left other processes behind; those are reported.
async function waitForExit(child: Child): Promise<{ end: ChildEnd; left: RaspDraft | null }> {
  try {
    return { end: await child.done, left: null };
  } catch (error) {
    if (!(error instanceof LeftBehindError) || error.end === null) throw error;
    return { end: error.end, left: draft('diagnostic.engine.warning', { message: error.message }) };
  }
}

// The session id that we chose is never used as the handle. If the output names a different one, one of the two is
// wrong.
function crossCheck({ chosenSession }: EngineCommand, { sessionId }: TurnEvidence): RaspDraft[] {
  if (chosenSession === undefined || sessionId === null || chosenSession === sessionId) return [];
  return [
    draft(
      'diagnostic.parser.warning',
      {
        code: 'SESSION_ID_CHANGED',
        message: `the session was to have the id ${chosenSession}, but the output names ${sessionId}`,
      },
      { sessionId },
    ),
  ];
}
