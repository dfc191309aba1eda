#!/usr/bin/env node
// A stand-in for `opencode run --format json` (1.18.33): events on stdout, nothing before the model's first output,
// sessions bound to their directory. Sessions are files under the data directory; the real one keeps them in SQLite.
import { existsSync, realpathSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { readOptions, Refusal } from './arguments.mjs';
import { complain, printBurst, printLine } from './output.mjs';
import { play } from './play.mjs';
import { createSession, loadSession } from './sessions.mjs';
import { runCommand } from './shell.mjs';

const OPTIONS = {
  '--format': ['format', true],
  '--dir': ['dir', true],
  '-m': ['model', true],
  '--model': ['model', true],
  '--agent': ['agent', true],
  '--title': ['title', true],
  '-s': ['session', true],
  '--session': ['session', true],
  '--auto': ['auto', false],
  '--yolo': ['auto', false],
  '--dangerously-skip-permissions': ['auto', false],
  '--thinking': ['thinking', false],
};
const SESSION = /^ses_[A-Za-z0-9]+$/;
// The real one hangs forever.
const HANG_MS = 60_000;
const REJECTED = 'The user rejected permission to use this specific tool call.';

const data = join(resolve(process.env.XDG_DATA_HOME ?? join(homedir(), '.local', 'share')), 'opencode');
const newName = (prefix) => `${prefix}_${randomBytes(13).toString('hex')}`;
const newId = () => newName('ses');
const red = (text) => `\u001b[91m\u001b[1mError: \u001b[0m${text}`;

// Rules of an agent precede the general ones.
function rulesFor(agent) {
  const { permission, agent: agents } = JSON.parse(process.env.OPENCODE_CONFIG_CONTENT || '{}');
  return { ...permission, ...agents?.[agent]?.permission };
}

const strict = {
  unknown: (flag) => new Refusal(1, `Unknown argument: ${flag.replace(/^-+/, '')}`),
  missing: (flag) => new Refusal(1, `Not enough arguments following: ${flag.replace(/^-+/, '')}`),
};

function readArguments([command, ...argv]) {
  if (command !== 'run') throw new Refusal(1, `the stand-in only plays \`opencode run\`, not '${command}'`);
  const { options, words } = readOptions(argv, OPTIONS, strict);
  if (options.format !== 'json') throw new Refusal(2, 'the stand-in only speaks --format json');
  return {
    options,
    rules: rulesFor(options.agent ?? 'build'),
    resumed: options.session !== undefined,
    session: options.session ?? newId(),
    // Read to its end in any case.
    stdin: 'prompt',
    toPrompt(text) {
      // As an argument, a text with a blank reaches the model in quotes.
      const message = words.map((word) => (word.includes(' ') ? `"${word.replaceAll('"', '\\"')}"` : word)).join(' ');
      const prompt = [message, text].filter((part) => part !== '').join('\n');
      if (prompt.trim() === '') throw new Refusal(1, red('You must provide a message or a command'));
      return prompt;
    },
  };
}

const fileOf = (id) => join(data, 'storage', 'session', `${id}.jsonl`);

async function openSession(call) {
  const { dir } = call.options;
  if (dir !== undefined) {
    if (!existsSync(dir)) throw new Refusal(1, red(`Failed to change directory to ${dir}`));
    process.chdir(dir);
  }
  if (!call.resumed) return createStored(call);
  const session = SESSION.test(call.session) ? loadSession(fileOf(call.session)) : undefined;
  if (!session) throw sessionNotFound();
  if (realpathSync(session.cwd) !== realpathSync(process.cwd())) {
    await sleep(HANG_MS);
    throw new Refusal(1, 'the stand-in has hung long enough');
  }
  return session;
}

function sessionNotFound() {
  return new Refusal(1, red('Session not found'));
}

function createStored({ session: id }) {
  return createSession(fileOf(id), { id, cwd: process.cwd() });
}

function createVoice({ call, sessionId }) {
  let messageID = newName('msg');
  let inStep = false;
  let calls = 0;
  const named = sessionId === null ? {} : { sessionID: sessionId };
  const event = (type, body) => printLine({ type, timestamp: Date.now(), ...named, ...body });
  const part = (body) => ({ part: { id: newName('prt'), messageID, ...named, ...body } });

  async function beginStep() {
    if (inStep) return;
    inStep = true;
    messageID = newName('msg');
    await event('step_start', part({ type: 'step-start' }));
  }

  async function endStep(reason) {
    inStep = false;
    await event(
      'step_finish',
      part({
        reason,
        type: 'step-finish',
        tokens: { total: 15, input: 10, output: 5, reasoning: 0, cache: { write: 0, read: 0 } },
        cost: 0,
      }),
    );
  }

  async function say(text) {
    await beginStep();
    const now = Date.now();
    await event('text', part({ type: 'text', text, time: { start: now, end: now } }));
  }

  // A call is reported when it has ended, and ends its step.
  async function useTool(tool, input, run) {
    await beginStep();
    const start = Date.now();
    const state = await run();
    calls += 1;
    await event('tool_use', {
      part: {
        type: 'tool',
        tool: state.tool ?? tool,
        callID: `call_${calls}`,
        state: { status: state.status, input: state.input ?? input, ...state.body, time: { start, end: Date.now() } },
        id: newName('prt'),
        ...named,
        messageID,
      },
    });
    await endStep('tool-calls');
    return state.outcome;
  }

  // The rules of the configuration: denied tools are not offered; tools that need a question are refused, and then the
  // run stops.
  async function guarded(rule, tool, what, run) {
    if (call.rules[rule] === 'deny')
      return {
        tool: 'invalid',
        status: 'completed',
        input: { tool, error: `Model tried to call unavailable tool '${tool}'.` },
        body: {
          output: `The arguments provided to the tool are invalid: Model tried to call unavailable tool '${tool}'.`,
          metadata: { truncated: false },
          title: 'Invalid Tool',
        },
      };
    if (call.rules[rule] !== 'ask' || call.options.auto) return run();
    await complain(`\u001b[93m\u001b[1m! \u001b[0mpermission requested: ${rule} (${what}); auto-rejecting`);
    return { status: 'error', body: { error: REJECTED }, outcome: 'stopped' };
  }

  return {
    say,
    // Nothing is printed before the model's first output.
    begin: async () => {},

    async ask(question) {
      await useTool('parley_ask_human', question, () => ({
        status: 'completed',
        body: { output: 'Question recorded. End your turn now and wait.', metadata: { truncated: false }, title: '' },
      }));
      await say('Question asked; ending my turn.');
    },

    tool: (command) =>
      useTool('bash', { command, description: 'stand-in' }, () =>
        guarded('bash', 'bash', command, async () => {
          const { text, code } = await runCommand(command, { dieWithUs: false });
          return {
            status: 'completed',
            body: { output: text, metadata: { output: text, exit: code, truncated: false }, title: command },
          };
        }),
      ),

    file: (name) =>
      useTool('write', { filePath: name, content: `${name}\n` }, () =>
        guarded('edit', 'write', name, () => {
          const filepath = join(process.cwd(), name);
          const exists = existsSync(filepath);
          writeFileSync(filepath, `${name}\n`);
          return {
            status: 'completed',
            body: {
              output: 'Wrote file successfully.',
              metadata: { diagnostics: {}, filepath, exists, truncated: false },
              title: name,
            },
          };
        }),
      ),

    // Of four lines three are texts and one is a call.
    async events(count, bytes) {
      await beginStep();
      const text = 'x'.repeat(bytes);
      const now = Date.now();
      const session = sessionId === null ? '' : `,"sessionID":"${sessionId}"`;
      const first = calls;
      calls += Math.ceil(count / 4);
      await printBurst(count, (index) => {
        const id = `"id":"prt_${now}x${index}","messageID":"${messageID}"${session}`;
        if (index % 4 < 3)
          return (
            `{"type":"text","timestamp":${now}${session},"part":{${id},"type":"text","text":"${text}",` +
            `"time":{"start":${now},"end":${now}}}}\n`
          );
        return (
          `{"type":"tool_use","timestamp":${now}${session},"part":{"type":"tool","tool":"bash",` +
          `"callID":"call_${first + Math.ceil(index / 4)}","state":{"status":"completed",` +
          `"input":{"command":"true"},"output":"${text}","metadata":{"exit":0,"truncated":false},` +
          `"title":"true","time":{"start":${now},"end":${now}}},${id}}}\n`
        );
      });
    },

    async fail() {
      await event('error', {
        error: {
          name: 'APIError',
          data: {
            message: 'stand-in bad request',
            statusCode: 400,
            isRetryable: false,
            responseBody: '{"error":{"message":"stand-in bad request"}}',
          },
        },
      });
      return 1;
    },

    async end() {
      await beginStep();
      await endStep('stop');
      return 0;
    },
  };
}

await play({
  name: 'opencode',
  version: '1.18.33',
  help: { asked: 'run --help', text: '  -s, --session  session id to continue' },
  newId,
  readArguments,
  openSession,
  createSession: createStored,
  sessionNotFound,
  createVoice,
});
