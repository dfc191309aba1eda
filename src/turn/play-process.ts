// Plays a turn of an engine that has a process for each: starts it, records what it prints, and judges it when it is
// gone.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunErrorCode } from '../contract/error-codes.js';
import type { EngineCommand } from '../engines/engine.js';
import { createTurnParser } from '../engines/registry.js';
import { redact } from '../kernel/redact.js';
import { startChild, type Child, type ChildEnd } from '../process/child.js';
import { LeftBehindError } from '../process/left-behind-error.js';
import type { Refusal } from '../process/spawn.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { TurnEvidence } from '../run/evidence.js';
import type { RunRecord } from '../store/store.js';
import { summariseParser } from './parser-summary.js';
import { prepareTurn } from './prepare-turn.js';
import { reportSilence } from './report-silence.js';
import { hearAsks, type TurnAsk } from './turn-ask.js';
import { checkLease, failStart, settle, stopElsewhere, weigh, type TurnScene } from './turn-scene.js';

const GRACE_MS = 3000;

export async function playProcess(scene: TurnScene, command: EngineCommand, ask: TurnAsk | null): Promise<RunRecord> {
  const { deps, engine, options, control, writer, version } = scene;
  const { run } = writer;
  const prepared = await prepareTurn(scene, ask?.command ?? null);
  if ('refused' in prepared) return failStart(scene, prepared.refused);
  const { attempt } = prepared;
  const parser = createTurnParser(engine, version);
  const env = { ...prepared.env, ...command.env };
  writeCommand(attempt.path, command, env);
  checkLease(scene);
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
        stopElsewhere(scene, parser);
        return stored;
      },
      isToolRunning: () => parser.isToolRunning,
      onSilence: () => reportSilence(scene, parser.isToolRunning),
    },
    deps.timers,
  );
  if (!result.started) return failStart(scene, { code: refusalCode(result.reason), message: result.message });
  const { child } = result;
  control.attach(child);
  void writer.add([draft('lifecycle.process.spawned', { pid: child.pid, start_time: child.startTime })]);
  const { end, left } = await endOf(child);
  if (left) void writer.add([left]);
  void writer.add(parser.finish());
  await writer.flush();
  const { evidence, remarks } = await hearAsks(engine, ask, parser.evidence());
  return settle(
    scene,
    await weigh(scene, {
      ...end,
      evidence,
      remarks: [...remarks, ...crossCheck(command, evidence)],
      parser: summariseParser(parser.counts()),
    }),
  );
}

function refusalCode(reason: Refusal['reason']): RunErrorCode {
  switch (reason) {
    case 'bad_cwd':
      return 'WORKING_FOLDER_UNUSABLE';
    case 'not_found':
    case 'not_executable':
      return 'ENGINE_NOT_FOUND';
    case 'other':
      return 'INTERNAL';
  }
}

// What was started, for people; of the environment only the names.
export function writeCommand(
  folder: string,
  { argv, cwd, stdin }: EngineCommand,
  env: Readonly<Record<string, string>>,
): void {
  const told = {
    argv: argv.map(redact),
    cwd,
    stdin_bytes: stdin === null ? null : Buffer.byteLength(stdin),
    env: Object.keys(env).toSorted(),
  };
  writeFileSync(join(folder, 'command.json'), `${JSON.stringify(told, null, 2)}\n`, { mode: 0o600 });
}

// A process that something of it outlived has ended all the same; that is told.
async function endOf(child: Child): Promise<{ end: ChildEnd; left: RaspDraft | null }> {
  try {
    return { end: await child.done, left: null };
  } catch (error) {
    if (!(error instanceof LeftBehindError) || error.end === null) throw error;
    return { end: error.end, left: draft('diagnostic.engine.warning', { message: error.message }) };
  }
}

// The id we chose is never the handle; but if the output names another, something is wrong with one of them.
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
