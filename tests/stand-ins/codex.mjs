#!/usr/bin/env node
// A stand-in for `codex exec --json` (0.166.0): JSONL on stdout, noise on stderr, threads under CODEX_HOME by id alone.
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readOptions, Refusal } from './arguments.mjs';
import { codexHome, findRollout, newId, newRollout, SESSIONS, UUID } from './codex-threads.mjs';
import { printBurst, printLine } from './output.mjs';
import { play } from './play.mjs';
import { createSession, loadSession } from './sessions.mjs';
import { quoteCommand, runCommand } from './shell.mjs';

const SANDBOXES = new Set(['read-only', 'workspace-write', 'danger-full-access']);
const MAX_OUTPUT_CHARS = 1024 * 1024;
const FAILURE = 'We’re currently experiencing high demand, which may cause temporary errors.';

const ANYWHERE = {
  '--json': ['json', false],
  '--skip-git-repo-check': ['skipGitCheck', false],
  '--ephemeral': ['ephemeral', false],
  '-m': ['model', true],
  '--model': ['model', true],
  '-c': ['config', true],
  '--config': ['config', true],
  '--output-schema': ['outputSchema', true],
  '-o': ['lastMessageFile', true],
  '--output-last-message': ['lastMessageFile', true],
};
// Refused after the words resume and fork.
const BEFORE_RESUME = {
  '-C': ['cd', true],
  '--cd': ['cd', true],
  '-s': ['sandbox', true],
  '--sandbox': ['sandbox', true],
  '--add-dir': ['addDir', true],
};
const SUBCOMMANDS = new Set(['resume', 'fork', 'review', 'help']);

const NO_ALIASES =
  'WARNING: proceeding, even though we could not create PATH aliases: Refusing to create helper ' +
  `binaries under temporary dir "/tmp" (codex_home: AbsolutePathBuf("${codexHome}"))`;
const BACKTRACE = ['', 'Stack backtrace:', ...Array.from({ length: 9 }, (_, index) => `   ${index}: <unknown>`)];

const strict = {
  unknown: (flag) => new Refusal(2, `error: unexpected argument '${flag}' found`),
  missing: (flag) => new Refusal(2, `error: a value is required for '${flag}' but none was supplied`),
};

function readArguments([command, ...argv]) {
  if (command !== 'exec') throw new Refusal(2, `error: the stand-in only plays \`codex exec\`, not '${command}'`);
  const first = readOptions(
    argv,
    { ...ANYWHERE, ...BEFORE_RESUME },
    { ...strict, stopAt: (word) => SUBCOMMANDS.has(word) },
  );
  const [subcommand, ...after] = first.rest;
  if (subcommand !== undefined && subcommand !== 'resume' && subcommand !== 'fork')
    throw new Refusal(2, `error: the stand-in does not play \`codex exec ${subcommand}\``);
  const second = readOptions(after, ANYWHERE, strict);
  const options = { ...first.options, ...second.options };
  const words = subcommand === undefined ? first.words : second.words.slice(1);
  const asked = subcommand === undefined ? undefined : second.words[0];
  if (words.length > 1) throw strict.unknown(words[1]);
  if (options.sandbox !== undefined && !SANDBOXES.has(options.sandbox))
    throw new Refusal(2, `error: invalid value '${options.sandbox}' for '--sandbox <SANDBOX_MODE>'`);
  if (!options.json) throw new Refusal(2, 'error: the stand-in only speaks --json');
  if (subcommand !== undefined && asked === undefined)
    throw new Refusal(2, `error: the stand-in plays \`${subcommand}\` only with a thread id`);
  // Anything but a UUID is read as a name. A fork finds none; a resume silently starts a new thread.
  if (subcommand === 'fork' && !UUID.test(asked))
    throw new Refusal(1, `Error: Session not found: ${asked}`, ...BACKTRACE);
  const resumed = subcommand === 'resume' && UUID.test(asked);
  const byStdin = words[0] === undefined || words[0] === '-';
  return {
    options,
    resumed,
    session: resumed ? asked : newId(),
    forked: subcommand === 'fork' ? asked : undefined,
    // With a prompt as an argument, a start still reads stdin to its end; a resume or a fork does not.
    stdin: byStdin ? 'prompt' : asked === undefined ? 'beside' : 'unread',
    greeting: [
      ...(codexHome.startsWith('/tmp/') ? [NO_ALIASES] : []),
      ...(byStdin || asked !== undefined ? [] : ['Reading additional input from stdin...']),
    ],
    toPrompt(text) {
      if (byStdin && text === '') throw new Refusal(1, 'No prompt provided via stdin.');
      return byStdin ? text : words[0];
    },
  };
}

// Enters the directory, and finds or creates the thread. Codex binds no thread to a directory.
function openSession(call) {
  const { cd, skipGitCheck } = call.options;
  if (cd !== undefined) {
    if (!existsSync(cd)) throw new Refusal(1, 'Error: No such file or directory (os error 2)', ...BACKTRACE);
    process.chdir(cd);
  }
  if (!skipGitCheck && !isInGit(process.cwd()))
    throw new Refusal(1, 'Not inside a trusted directory and --skip-git-repo-check was not specified.');
  if (call.forked !== undefined) return forkThread(call);
  if (!call.resumed) return createThread(call);
  const session = loadThread(call.session, 'resume');
  if (!session) throw sessionNotFound(call);
  return session;
}

function sessionNotFound({ session }) {
  return failed('resume', `no rollout found for thread id ${session}`);
}

function failed(word, why) {
  return new Refusal(1, `Error: thread/${word}: thread/${word} failed: ${why} (code -32600)`, ...BACKTRACE);
}

// A fork does not repeat its history: that is in the file of its source, which must exist as well.
function loadThread(id, word) {
  const file = findRollout(id);
  const session = file && loadSession(file);
  const base = session?.header.payload?.history_base;
  if (base === undefined) return session;
  if (!loadThread(base.thread_id, word))
    throw failed(word, `invalid paginated history lineage for ${id}: missing source rollout`);
  // The source as it was then.
  session.turns += base.turns;
  session.messages += base.messages;
  return session;
}

function forkThread(call) {
  const source = loadThread(call.forked, 'fork');
  if (!source) throw failed('fork', `no rollout found for thread id ${call.forked}`);
  const { id, turns, messages, kept } = source;
  const session = createThread(call, { payload: { history_base: { thread_id: id, turns, messages } } });
  Object.assign(session, { turns, messages });
  if (kept.length > 0) session.keep(kept);
  return session;
}

function isEmptyFolder(path) {
  return statSync(path).isDirectory() && readdirSync(path).length === 0;
}

function isInGit(directory) {
  // An empty one is left by Codex's sandbox in the folder for temporary files.
  return (
    (existsSync(join(directory, '.git')) && !isEmptyFolder(join(directory, '.git'))) ||
    (dirname(directory) !== directory && isInGit(dirname(directory)))
  );
}

function createThread(call, more = {}) {
  // An ephemeral thread is not stored where a resume would look.
  const directory = call.options.ephemeral ? join(codexHome, 'ephemeral') : SESSIONS;
  return createSession(join(directory, newRollout(call.session)), { id: call.session, cwd: process.cwd(), more });
}

function printItem(phase, item) {
  return printLine({ type: `item.${phase}`, item });
}

function createVoice({ call, session, sessionId }) {
  let items = 0;
  let lastMessage = '';
  const nextId = () => `item_${items++}`;

  async function say(text) {
    lastMessage = text;
    await printItem('completed', { id: nextId(), type: 'agent_message', text });
  }

  async function end() {
    if (call.options.lastMessageFile) writeFileSync(call.options.lastMessageFile, lastMessage);
    // Counted over the whole thread.
    const turns = session.turns + 1;
    await printLine({
      type: 'turn.completed',
      usage: {
        input_tokens: 100 * turns,
        cached_input_tokens: 10 * turns,
        cache_write_input_tokens: 0,
        output_tokens: 20 * turns,
        reasoning_output_tokens: 5 * turns,
      },
    });
    return 0;
  }

  return {
    say,
    end,

    async begin() {
      if (sessionId !== null) await printLine({ type: 'thread.started', thread_id: sessionId });
      await printLine({ type: 'turn.started' });
    },

    async ask(question) {
      const body = { id: nextId(), type: 'mcp_tool_call', server: 'parley', tool: 'ask_human', arguments: question };
      await printItem('started', { ...body, result: null, error: null, status: 'in_progress' });
      await printItem('completed', {
        ...body,
        result: {
          content: [{ type: 'text', text: 'Question recorded. End your turn now and wait.' }],
          structured_content: null,
        },
        error: null,
        status: 'completed',
      });
      await say('Question asked; ending my turn.');
    },

    async tool(command) {
      const body = { id: nextId(), type: 'command_execution', command: quoteCommand(command) };
      await printItem('started', { ...body, aggregated_output: '', exit_code: null, status: 'in_progress' });
      const { text, code } = await runCommand(command, { dieWithUs: true });
      await printItem('completed', {
        ...body,
        aggregated_output: text.slice(0, MAX_OUTPUT_CHARS),
        exit_code: code,
        status: code === 0 ? 'completed' : 'failed',
      });
    },

    // The sandbox applies to patches only; commands run without one.
    async file(name) {
      const path = join(process.cwd(), name);
      const body = {
        id: nextId(),
        type: 'file_change',
        changes: [{ path, kind: existsSync(path) ? 'update' : 'add' }],
      };
      await printItem('started', { ...body, status: 'in_progress' });
      const writable = (call.options.sandbox ?? 'read-only') !== 'read-only';
      if (writable) writeFileSync(path, `${name}\n`);
      await printItem('completed', { ...body, status: writable ? 'completed' : 'failed' });
    },

    // Of four lines two are messages and two the ends of a command.
    events(count, bytes) {
      const text = 'x'.repeat(bytes);
      const first = items;
      items += count;
      lastMessage = text;
      const message = (id) =>
        `{"type":"item.completed","item":{"id":"item_${id}","type":"agent_message","text":"${text}"}}\n`;
      return printBurst(count, (index) => {
        const id = first + index;
        if (index % 4 < 2 || (index % 4 === 2 && index === count - 1)) return message(id);
        if (index % 4 === 2)
          return (
            `{"type":"item.started","item":{"id":"item_${id}","type":"command_execution",` +
            '"command":"/bin/bash -lc true","aggregated_output":"","exit_code":null,' +
            '"status":"in_progress"}}\n'
          );
        return (
          `{"type":"item.completed","item":{"id":"item_${id - 1}","type":"command_execution",` +
          `"command":"/bin/bash -lc true","aggregated_output":"${text}","exit_code":0,` +
          '"status":"completed"}}\n'
        );
      });
    },

    async fail() {
      await printLine({ type: 'error', message: FAILURE });
      await printLine({ type: 'turn.failed', error: { message: FAILURE } });
      return 1;
    },
  };
}

// SIGINT: the stream just ends. SIGTERM has the default effect.
process.on('SIGINT', () => process.exit(1));

await play({
  name: 'codex',
  version: 'codex-cli 0.166.0',
  help: { asked: 'exec resume --help', text: 'Usage: codex exec resume [OPTIONS] [SESSION_ID] [PROMPT]' },
  newId,
  readArguments,
  openSession,
  createSession: createThread,
  sessionNotFound,
  createVoice,
});
