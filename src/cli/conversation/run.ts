// parley run, continue, fork and retry: start a new run, and show it until it waits or ends, or detach from it.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Permission } from '../../engines/engine.js';
import { findEngine } from '../../engines/registry.js';
import { isObject, parseJson, type Json, type JsonObject } from '../../kernel/json.js';
import type { CreateRunRequest } from '../../commands/create-request.js';
import { forceOf } from '../../commands/force-of.js';
import { checkModel } from '../../run/model-name.js';
import { refusal } from '../../run/request-error.js';
import type { DataDir } from '../../store/sqlite/data-dir.js';
import { chooseMode } from './choose-mode.js';
import { converse } from './converse.js';
import { withRun } from '../reading/find-run.js';
import { EXIT, type Io } from '../io.js';
import { dataDirOf, resolvePath, type DataOption } from '../data-dir.js';
import { startWork } from './start-work.js';
import { openToRead } from '../open-data.js';
import { runLine } from './tell.js';
import type { Job } from './assignment.js';
import { explainReason } from '../../messages/system-reason.js';
import { texts } from '../language/language.js';

export interface RunOptions extends DataOption {
  // The text for the agent; - reads it from stdin.
  readonly prompt: string;
  readonly interactive?: boolean;
  readonly auto?: boolean;
  readonly cwd?: string;
  readonly scratch?: boolean;
  readonly model?: string;
  readonly permission?: Permission;
  readonly schema?: string;
  readonly option: readonly string[];
  readonly label: readonly string[];
  readonly requestId?: string;
  readonly detach?: boolean;
  readonly force?: boolean;
  readonly json?: boolean;
}

export type StartOptions = Pick<RunOptions, 'data' | 'detach' | 'json' | 'force'>;
export type FollowUpOptions = StartOptions & Pick<RunOptions, 'prompt'>;

export async function runCommand(engine: string, options: RunOptions, io: Io): Promise<number> {
  // Reports mistakes before it starts a process.
  findEngine(engine);
  if (options.model !== undefined) checkModel(options.model);
  const runtimeOptions = readPairs(options.option, 'option', readValue);
  await checkOptions(runtimeOptions);
  const cwd = options.scratch ? null : folderOf(options, io);
  const request: CreateRunRequest = {
    engine,
    prompt: await readPrompt(options.prompt, io),
    execution_mode: chooseMode(options, dataDirOf(options, io), io),
    ...(cwd === null ? {} : { cwd }),
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.permission === undefined ? {} : { permission: options.permission }),
    ...(options.schema === undefined ? {} : { output_schema: await readSchema(options.schema, io) }),
    runtime_options: runtimeOptions,
    labels: readPairs(options.label, 'label', (value) => value),
    ...(options.requestId === undefined ? {} : { request_id: options.requestId }),
    ...forceOf(options),
  };
  return start({ type: 'create', request }, options, io);
}

// Loads the schema library only for a command with options.
async function checkOptions(options: JsonObject): Promise<void> {
  if (Object.keys(options).length === 0) return;
  (await import('../../run/runtime-options.js')).parseRuntimeOptions(options);
}

function folderOf({ cwd }: Pick<RunOptions, 'cwd'>, io: Io): string {
  if (cwd === undefined && io.cwd === null) throw refusal('INVALID_ARGUMENT.cwd_deleted');
  const path = resolvePath(cwd ?? '.', io);
  if (!existsSync(path)) throw refusal('INVALID_ARGUMENT.folder_missing', { path });
  return path;
}

export async function continueCommand(runRef: string, options: FollowUpOptions, io: Io): Promise<number> {
  return followUp('continue', { ...options, runRef }, io);
}

export async function forkCommand(runRef: string, options: FollowUpOptions, io: Io): Promise<number> {
  return followUp('fork', { ...options, runRef }, io);
}

async function followUp(
  type: 'continue' | 'fork',
  options: FollowUpOptions & { readonly runRef: string },
  io: Io,
): Promise<number> {
  const runId = await withRun(options, io, async (_data, run) => run.run_id);
  const prompt = await readPrompt(options.prompt, io);
  return start({ type, run_id: runId, prompt, ...forceOf(options) }, options, io);
}

export async function retryCommand(runRef: string, options: StartOptions, io: Io): Promise<number> {
  const runId = await withRun({ ...options, runRef }, io, async (_data, run) => run.run_id);
  return start({ type: 'retry', run_id: runId, ...forceOf(options) }, options, io);
}

async function start(job: Job, options: StartOptions, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const work = await startWork({ data: path, job }, io);
  const data = await openToRead(path, io);
  if (!data) throw new Error(`the worker made no database in ${path}`);
  try {
    const { runId } = work;
    const json = options.json ?? false;
    if (options.detach) return await printDetached(data, { runId, json }, io);
    return await converse(data, { runId, work, json, answer: true }, io);
  } finally {
    await data.close();
  }
}

// Prints the id of a run that continues without this command.
export async function printDetached(
  data: DataDir,
  { runId, json }: { readonly runId: string; readonly json: boolean },
  io: Io,
): Promise<number> {
  const run = await data.store.loadRun(runId);
  if (json && run) io.stdout.write(`${runLine(run, null, io.clock.now())}\n`);
  else io.stdout.write(`${runId}\n`);
  return EXIT.ok;
}

export async function readPrompt(input: string, io: Io): Promise<string> {
  if (input !== '-') return input;
  if (io.terminal.stdin) io.stderr.write(`${texts().say.readingText}\n`);
  return text(io.stdin);
}

async function readSchema(path: string, io: Io): Promise<JsonObject> {
  const content = await readFile(resolvePath(path, io), 'utf8').catch((error: Error) => {
    throw refusal('INVALID_ARGUMENT.schema_unreadable', { path, reason: explainReason(error) });
  });
  const schema = parseJson(content);
  if (!isObject(schema)) throw refusal('INVALID_ARGUMENT.schema_form', { path });
  return schema;
}

function readPairs<T extends Json>(
  pairs: readonly string[],
  what: string,
  read: (value: string) => T,
): Record<string, T> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw refusal('INVALID_ARGUMENT.pair', { option: `--${what}`, value: pair });
      return [pair.slice(0, at), read(pair.slice(at + 1))];
    }),
  );
}

// true, 5 and null are parsed as JSON; any other value is a string.
function readValue(value: string): Json {
  const parsed = parseJson(value);
  return parsed === undefined ? value : parsed;
}
