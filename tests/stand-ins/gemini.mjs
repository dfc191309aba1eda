#!/usr/bin/env node
// A stand-in for `gemini -o stream-json` (0.61.0, as one process): events on stdout, sessions bound to the exact
// directory.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { randomUUID } from 'node:crypto';
import { readOptions, Refusal } from './arguments.mjs';
import { complain, printBurst, printLine, write } from './output.mjs';
import { play } from './play.mjs';
import { createSession, loadSession } from './sessions.mjs';
import { runCommand } from './shell.mjs';

const OPTIONS = {
  '-m': ['model', true],
  '--model': ['model', true],
  '-o': ['format', true],
  '--output-format': ['format', true],
  '-p': ['prompt', true],
  '--prompt': ['prompt', true],
  '-r': ['resume', true],
  '--resume': ['resume', true],
  '--session-id': ['sessionId', true],
  '-y': ['yolo', false],
  '--yolo': ['yolo', false],
  '--approval-mode': ['approval', true],
  '--skip-trust': ['skipTrust', false],
  '--allowed-mcp-server-names': ['mcpServers', true],
  '--policy': ['policy', true],
};
const APPROVALS = ['default', 'auto_edit', 'yolo', 'plan'];
// For stdin next to -p. If the prompt comes only on stdin, the real limit is the same; a stand-in waits for it, so that
// a busy machine fails no test.
const FIRST_BYTE_MS = 500;
const NO_COLOURS =
  'Warning: 256-color support not detected. Using a terminal with at least 256-color support is recommended for a ' +
  'better visual experience.';
const UNTRUSTED =
  '\u001b[31mGemini CLI is not running in a trusted directory. To proceed, either use `--skip-trust`, set the ' +
  '`GEMINI_CLI_TRUST_WORKSPACE=true` environment variable, or trust this directory in interactive mode. For more ' +
  'details, see https://geminicli.com/docs/cli/trusted-folders/#headless-and-automated-environments\u001b[0m';
const FAILURE = '{"error":{"code":500,"message":"stand-in internal error","status":"INTERNAL"}}';
// The exit code is the HTTP status, of which eight bits are left.
const FAILURE_CODE = 500 & 0xff;

const home = join(resolve(process.env.GEMINI_CLI_HOME ?? homedir()), '.gemini');
const PROJECTS = join(home, 'projects.json');
const LOCK_MS = 5000;

const usage = (problem) => new Refusal(1, 'Usage: gemini [options] [command]', '', problem);
const strict = {
  unknown: (flag) => usage(`Unknown argument: ${flag.replace(/^-+/, '')}`),
  missing: (flag) => usage(`Not enough arguments following: ${flag.replace(/^-+/, '')}`),
};

function readArguments(argv) {
  const { options, words } = readOptions(argv, OPTIONS, strict);
  if (words.length > 0) throw new Refusal(2, 'the stand-in takes its prompt on stdin or with -p');
  if (options.format !== 'stream-json') throw new Refusal(2, 'the stand-in only speaks -o stream-json');
  if (options.approval !== undefined && !APPROVALS.includes(options.approval))
    throw usage(
      `Invalid values:\n  Argument: approval-mode, Given: "${options.approval}", Choices: ` +
        `${APPROVALS.map((mode) => `"${mode}"`).join(', ')}`,
    );
  return {
    options,
    approval: options.yolo ? 'yolo' : (options.approval ?? 'default'),
    resumed: options.resume !== undefined,
    session: options.resume ?? options.sessionId ?? randomUUID(),
    stdin: 'prompt',
    firstByteMs: options.prompt === undefined ? undefined : FIRST_BYTE_MS,
    toPrompt(text) {
      const prompt =
        options.prompt === undefined || text === '' ? text + (options.prompt ?? '') : `${text}\n\n\n${options.prompt}`;
      if (prompt.trim() === '')
        throw new Refusal(
          42,
          'No input provided via stdin. Input can be provided by piping data into gemini or using the --prompt option.',
        );
      return prompt;
    },
  };
}

async function openSession(call) {
  if (process.env.GEMINI_CLI_TRUST_WORKSPACE !== 'true' && !call.options.skipTrust) throw new Refusal(55, UNTRUSTED);
  const chat = findChat(call.session);
  if (call.resumed && !chat) throw sessionNotFound(call);
  if (!call.resumed && chat)
    throw new Refusal(
      42,
      `Error starting session: Session ID "${call.session}" already exists. Use --resume to continue it.`,
    );
  await complain(NO_COLOURS);
  // Twice, as in the real CLI.
  if (call.approval === 'yolo')
    await write(process.stderr, 'YOLO mode is enabled. All tool calls will be automatically approved.\n'.repeat(2));
  await complain('Ripgrep is not available. Falling back to GrepTool.');
  return chat ?? createChat(call);
}

function sessionNotFound({ session }) {
  const chats = chatsDirectory();
  if (listChats(chats).length === 0)
    return new Refusal(42, 'Error resuming session: No previous sessions found for this project.');
  return new Refusal(
    42,
    `Error resuming session: Invalid session identifier "${session}".`,
    `  Searched for sessions in ${chats}.`,
    '  Use --list-sessions to see available sessions, then use --resume {number}, --resume {uuid}, or --resume latest.',
  );
}

// The name of the project is the last part of its directory; a second one of that name gets a number.
function chatsDirectory() {
  const cwd = process.cwd();
  const slug = readProjects()[cwd] ?? withProjectsLocked(() => addProject(cwd));
  return join(home, 'tmp', slug, 'chats');
}

function readProjects() {
  return existsSync(PROJECTS) ? JSON.parse(readFileSync(PROJECTS, 'utf8')).projects : {};
}

function addProject(cwd) {
  const projects = readProjects();
  if (projects[cwd] !== undefined) return projects[cwd];
  const taken = new Set(Object.values(projects));
  const base = basename(cwd) || 'root';
  let slug = base;
  for (let number = 1; taken.has(slug); number += 1) slug = `${base}-${number}`;
  const written = `${PROJECTS}.${process.pid}`;
  writeFileSync(written, JSON.stringify({ projects: { ...projects, [cwd]: slug } }));
  renameSync(written, PROJECTS);
  return slug;
}

// Several processes may share a home. A lock whose owner was killed is taken over after a while.
function withProjectsLocked(act) {
  const lock = `${PROJECTS}.lock`;
  const deadline = Date.now() + LOCK_MS;
  mkdirSync(home, { recursive: true });
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      if (Date.now() > deadline) break;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
  try {
    return act();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function listChats(chats) {
  return existsSync(chats) ? readdirSync(chats).filter((name) => name.endsWith('.jsonl')) : [];
}

// A file's name has only the first eight characters of the id.
function findChat(id) {
  const chats = chatsDirectory();
  const names = listChats(chats).filter((name) => name.endsWith(`-${id.slice(0, 8)}.jsonl`));
  return names.map((name) => loadSession(join(chats, name))).find((session) => session?.id === id);
}

function createChat({ session: id }) {
  const minute = new Date().toISOString().slice(0, 16).replace(':', '-');
  return createSession(join(chatsDirectory(), `session-${minute}-${id.slice(0, 8)}.jsonl`), { id, cwd: process.cwd() });
}

function printEvent(type, body) {
  return printLine({ type, timestamp: new Date().toISOString(), ...body });
}

// The model is not offered tools that the approval mode does not allow.
async function notRegistered(name) {
  const message = `Tool "${name}" not found. Did you mean one of: "update_topic", "grep_search", "invoke_agent"?`;
  await complain(`Error executing tool ${name}: ${message}`);
  return { status: 'error', output: message, error: { type: 'tool_not_registered', message } };
}

function createVoice({ call, prompt, sessionId }) {
  const model = call.options.model ?? 'auto';
  const started = Date.now();
  let calls = 0;
  // Pieces of one message follow each other directly; a new thought starts on a new line.
  let open = false;

  async function say(text) {
    await printEvent('message', { role: 'assistant', content: open ? `\n${text}` : text, delta: true });
    open = true;
  }

  async function useTool(name, parameters, run) {
    open = false;
    const toolId = `${name}__${name}_${Date.now()}_${calls}`;
    calls += 1;
    await printEvent('tool_use', { tool_name: name, tool_id: toolId, parameters });
    await printEvent('tool_result', { tool_id: toolId, ...(await run()) });
  }

  function statistics(tokens) {
    const counts = {
      total_tokens: 3 * tokens,
      input_tokens: 2 * tokens,
      output_tokens: tokens,
      cached: 0,
      input: 2 * tokens,
    };
    return { ...counts, duration_ms: Date.now() - started, tool_calls: calls, models: { [model]: counts } };
  }

  return {
    say,

    async begin() {
      if (sessionId !== null) await printEvent('init', { session_id: sessionId, model });
      await printEvent('message', { role: 'user', content: prompt });
    },

    async ask(question) {
      await useTool('mcp_parley_ask_human', question, () => ({
        status: 'success',
        output: 'Question recorded. End your turn now and wait.',
      }));
      await say('Question asked; ending my turn.');
    },

    tool: (command) =>
      useTool('run_shell_command', { command, description: 'stand-in' }, async () => {
        if (call.approval !== 'yolo') return notRegistered('run_shell_command');
        if (/\$\(|`|<\(/.test(command))
          return { status: 'success', output: 'Blocked: command substitution detected in shell command.' };
        const { text } = await runCommand(command, { dieWithUs: false });
        return { status: 'success', output: text.trimEnd() };
      }),

    file: (name) =>
      useTool('write_file', { file_path: join(process.cwd(), name), content: `${name}\n` }, () => {
        if (call.approval !== 'yolo' && call.approval !== 'auto_edit') return notRegistered('write_file');
        writeFileSync(join(process.cwd(), name), `${name}\n`);
        return { status: 'success' };
      }),

    // Of four lines two are pieces of a message and two the ends of a call.
    async events(count, bytes) {
      const text = 'x'.repeat(bytes);
      const time = new Date().toISOString();
      const first = calls;
      calls += Math.floor(count / 4);
      await printBurst(count, (index) => {
        const toolId = `run_shell_command__run_shell_command_${started}_${first + Math.floor(index / 4)}`;
        if (index % 4 < 2 || (index % 4 === 2 && index === count - 1))
          return `{"type":"message","timestamp":"${time}","role":"assistant","content":"${text}","delta":true}\n`;
        if (index % 4 === 2)
          return (
            `{"type":"tool_use","timestamp":"${time}","tool_name":"run_shell_command",` +
            `"tool_id":"${toolId}","parameters":{"command":"true"}}\n`
          );
        return (
          `{"type":"tool_result","timestamp":"${time}","tool_id":"${toolId}","status":"success",` +
          `"output":"${text}"}\n`
        );
      });
      open = count % 4 !== 0;
    },

    async fail() {
      await complain(`Attempt 1 failed: ${FAILURE}. Max attempts reached`);
      await complain(
        'Error when talking to Gemini API Full report available at: ' +
          `/tmp/gemini-client-error-Turn.run-sendMessageStream-stand-in.json _ApiError: ${FAILURE}`,
      );
      await printEvent('result', {
        status: 'error',
        error: { type: 'unknown', message: `[API Error: ${FAILURE}]` },
        stats: statistics(0),
      });
      return FAILURE_CODE;
    },

    async end() {
      await printEvent('result', { status: 'success', stats: statistics(10) });
      return 0;
    },
  };
}

// SIGTERM: exit code 0, and no result.
process.on('SIGTERM', async () => {
  await complain("[STARTUP] Phase 'cleanup_ops' was started but never ended. Skipping metrics.");
  process.exit(0);
});

await play({
  name: 'gemini',
  version: '0.61.0',
  help: { asked: '--help', text: '  -r, --resume  Resume a previous session.' },
  newId: randomUUID,
  readArguments,
  openSession,
  createSession: createChat,
  sessionNotFound,
  createVoice,
});
