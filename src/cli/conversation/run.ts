// parley run, continue, fork and retry: a new run, in front of the person until it waits or has ended, or left to
// itself.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Permission } from '../../engines/engine.js';
import { findEngine } from '../../engines/registry.js';
import { isObject, parseJson, type Json, type JsonObject } from '../../kernel/json.js';
import type { CreateRunRequest } from '../../commands/create-request.js';
import { forceOf } from '../../commands/force-of.js';
import { checkModel } from '../../run/model-name.js';
import type { ExecutionMode } from '../../run/attempt.js';
import { RequestError } from '../../run/request-error.js';
import { parseRuntimeOptions } from '../../run/runtime-options.js';
import type { DataDir } from '../../store/sqlite/data-dir.js';
import { converse } from './converse.js';
import { withRun } from '../reading/find-run.js';
import { EXIT, type Io } from '../io.js';
import { dataDirOf, resolvePath, type DataOption } from '../data-dir.js';
import { startWork } from './start-work.js';
import { openToRead } from '../open-data.js';
import { runLine } from './tell.js';
import type { Job } from './worker.js';
import { reasonOf } from '../../kernel/system-error.js';

export interface RunOptions extends DataOption {
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

export async function runCommand(engine: string, prompt: string, options: RunOptions, io: Io): Promise<number> {
  // What can be told at once is told before a process is started for it.
  findEngine(engine);
  if (options.model !== undefined) checkModel(options.model);
  parseRuntimeOptions(readPairs(options.option, 'option', readValue));
  const cwd = options.scratch ? null : folderOf(options, io);
  const request: CreateRunRequest = {
    engine,
    prompt: await readPrompt(prompt, io),
    execution_mode: modeOf(options, io),
    ...(cwd === null ? {} : { cwd }),
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.permission === undefined ? {} : { permission: options.permission }),
    ...(options.schema === undefined ? {} : { output_schema: await readSchema(options.schema, io) }),
    runtime_options: readPairs(options.option, 'option', readValue),
    labels: readPairs(options.label, 'label', (value) => value),
    ...(options.requestId === undefined ? {} : { request_id: options.requestId }),
    ...forceOf(options),
  };
  return start({ type: 'create', request }, options, io);
}

// Somebody who sits at a terminal can be asked; a script cannot.
function modeOf({ interactive, auto }: RunOptions, { terminal }: Io): ExecutionMode {
  if (interactive || auto) return interactive ? 'interactive' : 'auto';
  return terminal.stdin && terminal.stdout ? 'interactive' : 'auto';
}

function folderOf({ cwd }: Pick<RunOptions, 'cwd'>, io: Io): string {
  if (cwd === undefined && io.cwd === null)
    throw new RequestError(
      'INVALID_ARGUMENT',
      'The current folder was deleted, so the agent would have nowhere to work. Change to another folder (cd), or ' +
        'name one: --cwd /absolute/path, or --scratch for an empty one.',
    );
  const path = resolvePath(cwd ?? '.', io);
  if (!existsSync(path)) throw new RequestError('INVALID_ARGUMENT', `the folder ${path} does not exist`);
  return path;
}

export async function continueCommand(meant: string, prompt: string, options: StartOptions, io: Io): Promise<number> {
  const runId = await withRun(meant, options, io, async (_data, run) => run.run_id);
  return start(
    { type: 'continue', run_id: runId, prompt: await readPrompt(prompt, io), ...forceOf(options) },
    options,
    io,
  );
}

export async function forkCommand(meant: string, prompt: string, options: StartOptions, io: Io): Promise<number> {
  const runId = await withRun(meant, options, io, async (_data, run) => run.run_id);
  return start({ type: 'fork', run_id: runId, prompt: await readPrompt(prompt, io), ...forceOf(options) }, options, io);
}

export async function retryCommand(meant: string, options: StartOptions, io: Io): Promise<number> {
  const runId = await withRun(meant, options, io, async (_data, run) => run.run_id);
  return start({ type: 'retry', run_id: runId, ...forceOf(options) }, options, io);
}

async function start(job: Job, options: StartOptions, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const work = await startWork({ data: path, job }, io);
  const data = await openToRead(path, io);
  if (!data) throw new Error(`the worker made no database in ${path}`);
  try {
    if (!options.detach)
      return await converse(data, work.runId, work, { json: options.json ?? false, answer: true }, io);
    return await tellDetached(data, work.runId, options, io);
  } finally {
    await data.close();
  }
}

// The run goes on by itself: the id is all there is to say of it now.
export async function tellDetached(data: DataDir, runId: string, { json }: StartOptions, io: Io): Promise<number> {
  const run = await data.store.loadRun(runId);
  if (json && run) io.stdout.write(`${runLine(run, null, io.clock.now())}\n`);
  else io.stdout.write(`${runId}\n`);
  return EXIT.ok;
}

export async function readPrompt(given: string, io: Io): Promise<string> {
  if (given !== '-') return given;
  if (io.terminal.stdin) io.stderr.write('parley: reading the text from this terminal; end it with Ctrl-D\n');
  return text(io.stdin);
}

async function readSchema(path: string, io: Io): Promise<JsonObject> {
  const content = await readFile(resolvePath(path, io), 'utf8').catch((error: Error) => {
    throw new RequestError('INVALID_ARGUMENT', `cannot read the schema "${path}": ${reasonOf(error)}`);
  });
  const schema = parseJson(content);
  if (!isObject(schema)) throw new RequestError('INVALID_ARGUMENT', `the schema "${path}" is not a JSON object`);
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
      if (at < 1) throw new RequestError('INVALID_ARGUMENT', `--${what} needs name=value, not "${pair}"`);
      return [pair.slice(0, at), read(pair.slice(at + 1))];
    }),
  );
}

// true, 5 and null are what they look like; anything else is a word.
function readValue(value: string): Json {
  const parsed = parseJson(value);
  return parsed === undefined ? value : parsed;
}
