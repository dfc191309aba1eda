#!/usr/bin/env node
// A stand-in for `iflow -p` (0.5.19, the last version): text and noise on stdout, one <Execution Info> block on stderr
// at the very end, sessions bound to their directory. No MCP: a question is an envelope at the end of the text.
import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { readOptions, Refusal } from './arguments.mjs';
import { complain, printBurst, write } from './output.mjs';
import { play } from './play.mjs';
import { createSession, loadSession } from './sessions.mjs';
import { runCommand } from './shell.mjs';

const OPTIONS = {
  '-m': ['model', true],
  '--model': ['model', true],
  '-p': ['prompt', true],
  '--prompt': ['prompt', true],
  '-r': ['resume', true],
  '--resume': ['resume', true],
  '-o': ['outputFile', true],
  '--output-file': ['outputFile', true],
  '--max-turns': ['maxTurns', true],
  '--max-tokens': ['maxTokens', true],
  '--timeout': ['timeout', true],
  '-y': ['yolo', false],
  '--yolo': ['yolo', false],
  '--default': ['default', false],
  '--plan': ['plan', false],
  '--autoEdit': ['autoEdit', false],
  '--thinking': ['thinking', false],
  '--stream': ['stream', false],
};
const SESSION = /^session-[A-Za-z0-9-]+$/;

const newId = () => `session-${randomUUID()}`;
const strict = {
  unknown: (flag) =>
    new Refusal(1, 'Usage: iflow [options] [command]', '', `Unknown argument: ${flag.replace(/^-+/, '')}`),
  missing: (flag) =>
    new Refusal(
      1,
      'Usage: iflow [options] [command]',
      '',
      `Not enough arguments following: ${flag.replace(/^-+/, '')}`,
    ),
};

function readArguments(argv) {
  const { options, words } = readOptions(argv, OPTIONS, strict);
  const argument = options.prompt ?? words[0];
  return {
    options,
    resumed: options.resume !== undefined,
    session: options.resume ?? newId(),
    stdin: argument === undefined ? 'prompt' : 'unread',
    toPrompt(text) {
      const prompt = argument ?? text;
      if (prompt === '') throw new Refusal(1, 'No input provided via stdin.');
      return prompt;
    },
  };
}

// A separate directory for each working directory, named after it.
function fileOf(id) {
  return join(homedir(), '.iflow', 'projects', process.cwd().replaceAll(/[^A-Za-z0-9]/g, '-'), `${id}.jsonl`);
}

function openSession(call) {
  if (!call.resumed) return createStored(call);
  const session = SESSION.test(call.session) ? loadSession(fileOf(call.session)) : undefined;
  if (!session) throw sessionNotFound(call);
  return session;
}

// Only the exit code is recorded, not the text.
function sessionNotFound({ session }) {
  return new Refusal(1, `Error: session ${session} not found`);
}

function createStored({ session: id }) {
  return createSession(fileOf(id), { id, cwd: process.cwd() });
}

function say(text) {
  return write(process.stdout, `${text}\n`);
}

function createVoice({ call, session, sessionId }) {
  const { options } = call;
  const started = Date.now();
  let rounds = 0;

  // The model is called again after each tool, and each call prints a remark.
  async function callModel() {
    rounds += 1;
    await say(`Model ${options.model ?? 'stand-in-model'} does not support thinking mode`);
  }

  // In these modes the tools that change something are removed; the exit code stays 0.
  async function useTool(name, run) {
    if (options.plan || options.default)
      await complain(`Error executing tool ${name}: Tool "${name}" not found in registry.`);
    else await run();
    await callModel();
  }

  async function end(more = {}) {
    const info = {
      ...(sessionId === null ? {} : { 'session-id': sessionId }),
      'conversation-id': randomUUID(),
      assistantRounds: rounds,
      executionTimeMs: Date.now() - started,
      tokenUsage: { input: 812, output: 45, total: 857 },
      ...more,
    };
    const text = JSON.stringify(info, null, 2);
    if (options.outputFile) writeFileSync(options.outputFile, text);
    await complain(`\n<Execution Info>\n${text}\n</Execution Info>`);
    return 0;
  }

  return {
    say,
    end: () => end(),

    async begin() {
      if (call.resumed && sessionId !== null)
        await complain(`\nℹ️  Resuming session ${sessionId} (${session.messages} messages loaded)`);
      await callModel();
    },

    ask: (question) => say(`I need to know one thing.\n\n${JSON.stringify({ ask_user: question })}`),

    // The output contains nothing about a tool.
    tool: (command) => useTool('run_shell_command', () => runCommand(command, { dieWithUs: false })),
    file: (name) => useTool('write_file', () => writeFileSync(join(process.cwd(), name), `${name}\n`)),

    events(count, bytes) {
      const line = `${'x'.repeat(bytes)}\n`;
      return printBurst(count, () => line);
    },

    fail: () => end({ terminationReason: 'max_turns_exceeded' }),
  };
}

await play({
  name: 'iflow',
  version: '0.5.19',
  help: { asked: '--help', text: '  -r, --resume  Resume a session' },
  newId,
  readArguments,
  openSession,
  createSession: createStored,
  sessionNotFound,
  createVoice,
});
