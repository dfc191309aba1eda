// The list of engines, and functions that work for any of them.
import { invariant } from '../kernel/invariant.js';
import { refusal, type RequestError } from '../run/request-error.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import { claudeCommand } from './claude/command.js';
import { claudeGate } from './claude/gate.js';
import { claudeHandle } from './claude/handle.js';
import { claudeHome } from './claude/home.js';
import { CLAUDE_PROFILE, createClaudeReader } from './claude/parser.js';
import { claudeProbe } from './claude/probe.js';
import { codexCommand } from './codex/command.js';
import { codexHandle } from './codex/handle.js';
import { codexHome } from './codex/home.js';
import { CODEX_PROFILE, createCodexReader } from './codex/parser.js';
import { codexProbe } from './codex/probe.js';
import { codexAppServerCommand } from './codex-app-server/command.js';
import { codexAppServerHandle } from './codex-app-server/handle.js';
import { codexAppServerHome } from './codex-app-server/home.js';
import { CODEX_APP_SERVER_PROFILE, createCodexAppServerReader } from './codex-app-server/parser.js';
import { codexAppServerProbe } from './codex-app-server/probe.js';
import { codexAppServerResident } from './codex-app-server/resident.js';
import type { Engine, EngineCommand, TurnSpec } from './engine.js';
import { geminiCommand } from './gemini/command.js';
import { geminiHandle } from './gemini/handle.js';
import { geminiHome } from './gemini/home.js';
import { createGeminiReader, GEMINI_PROFILE } from './gemini/parser.js';
import { geminiProbe } from './gemini/probe.js';
import { iflowCommand } from './iflow/command.js';
import { iflowHandle } from './iflow/handle.js';
import { iflowHome } from './iflow/home.js';
import { createIflowReader, IFLOW_PROFILE } from './iflow/parser.js';
import { iflowProbe } from './iflow/probe.js';
import { opencodeCommand } from './opencode/command.js';
import { opencodeHandle } from './opencode/handle.js';
import { opencodeHome } from './opencode/home.js';
import { createOpencodeReader, OPENCODE_PROFILE } from './opencode/parser.js';
import { opencodeProbe } from './opencode/probe.js';
import { rehearsalCommand } from './rehearsal/command.js';
import { rehearsalHandle } from './rehearsal/handle.js';
import { rehearsalHome } from './rehearsal/home.js';
import { createRehearsalReader, REHEARSAL_PROFILE } from './rehearsal/parser.js';
import { rehearsalProbe } from './rehearsal/probe.js';
import { TurnParser, type ParserStart } from './turn-parser.js';

export const ENGINES: readonly Engine[] = [
  {
    name: 'claude',
    profile: CLAUDE_PROFILE,
    command: claudeCommand,
    handle: claudeHandle,
    probe: claudeProbe,
    home: claudeHome,
    asksByTool: true,
    gate: claudeGate,
    createReader: createClaudeReader,
  },
  {
    name: 'codex',
    profile: CODEX_PROFILE,
    command: codexCommand,
    handle: codexHandle,
    probe: codexProbe,
    home: codexHome,
    asksByTool: true,
    createReader: createCodexReader,
  },
  {
    name: 'codex-app-server',
    profile: CODEX_APP_SERVER_PROFILE,
    command: codexAppServerCommand,
    handle: codexAppServerHandle,
    probe: codexAppServerProbe,
    home: codexAppServerHome,
    asksByTool: false,
    createReader: createCodexAppServerReader,
    resident: codexAppServerResident,
  },
  {
    name: 'gemini',
    profile: GEMINI_PROFILE,
    command: geminiCommand,
    handle: geminiHandle,
    probe: geminiProbe,
    home: geminiHome,
    asksByTool: true,
    createReader: createGeminiReader,
  },
  {
    name: 'iflow',
    profile: IFLOW_PROFILE,
    command: iflowCommand,
    handle: iflowHandle,
    probe: iflowProbe,
    home: iflowHome,
    asksByTool: false,
    createReader: createIflowReader,
  },
  {
    name: 'opencode',
    profile: OPENCODE_PROFILE,
    command: opencodeCommand,
    handle: opencodeHandle,
    probe: opencodeProbe,
    home: opencodeHome,
    asksByTool: true,
    createReader: createOpencodeReader,
  },
  {
    name: 'rehearsal',
    profile: REHEARSAL_PROFILE,
    command: rehearsalCommand,
    handle: rehearsalHandle,
    probe: rehearsalProbe,
    home: rehearsalHome,
    asksByTool: false,
    createReader: createRehearsalReader,
  },
];

export function findEngine(name: string): Engine {
  const engine = ENGINES.find((candidate) => candidate.name === name);
  if (!engine)
    throw refusal('UNKNOWN_ENGINE', { engine: name, engines: ENGINES.map((known) => known.name).join(', ') });
  return engine;
}

export function createTurnParser(engine: Engine, engineVersion?: string, start?: ParserStart): TurnParser {
  const { profile, createReader, handle } = engine;
  return new TurnParser({ profile, createReader, acceptsSession: handle.accepts, engineVersion, ...start });
}

export function buildHandle(
  engine: Engine,
  sessionId: string,
  where: { cwd: string; home: string | null; attempt: number; type?: EngineSessionHandle['handle_type'] },
): EngineSessionHandle {
  return {
    engine: engine.name,
    handle_type: where.type ?? 'session_id',
    handle_value: sessionId,
    cwd: where.cwd,
    home: where.home,
    created_at_attempt: where.attempt,
  };
}

// Refuses a resume that cannot succeed before anything is started.
export function buildCommand(
  engine: Engine,
  spec: TurnSpec,
  handle: EngineSessionHandle | null,
  copied?: string,
): EngineCommand {
  if (handle === null) return copied === undefined ? engine.command.buildStart(spec) : buildFork(engine, spec, copied);
  const mismatch = explainMismatch(engine, spec.cwd, handle);
  if (mismatch !== null) throw mismatch;
  return engine.command.buildResume(spec, handle);
}

function buildFork(engine: Engine, spec: TurnSpec, copied: string): EngineCommand {
  if (!engine.handle.accepts(copied))
    throw refusal('HANDLE_MISMATCH.invalid_id', { session: copied, engine: engine.name });
  invariant(engine.command.buildFork, 'the engine can begin with a copy of a session');
  return engine.command.buildFork(spec, copied);
}

// Why this engine cannot continue a session in this directory, or null.
export function explainMismatch(engine: Engine, cwd: string, handle: EngineSessionHandle): RequestError | null {
  const { handle_value: session, engine: owner, cwd: path } = handle;
  if (owner !== engine.name) return refusal('HANDLE_MISMATCH.engine', { owner, engine: engine.name });
  if (!engine.handle.accepts(session)) return refusal('HANDLE_MISMATCH.invalid_id', { session, engine: engine.name });
  if (path !== cwd) return refusal('HANDLE_MISMATCH.directory', { path, cwd });
  return null;
}
