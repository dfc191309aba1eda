// One turn: starts, runs its steps one after another, each with the messages of the real server, and ends exactly once,
// as `completed`, `interrupted` or `failed`. While it waits for the client, the thread stores the requests to repeat
// and the rest of the script, so that another process can continue it.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { newId } from '../codex-threads.mjs';
import { log } from '../log.mjs';
import { quoteCommand, startCommand } from '../shell.mjs';
import { parseScript } from './script.mjs';
import { nextItem, stamped, Voice } from './voice.mjs';
import { ask, flush, notify, withdraw } from './wire.mjs';

const QUOTED_CHARS = 60;
const LEFT = 'All right, I leave it.';
const FORM = {
  type: 'object',
  properties: { name: { type: 'string', title: 'Name' }, sure: { type: 'boolean', title: 'Sure?' } },
  required: ['name'],
};
const SMALL_FORM = {
  type: 'object',
  properties: { confirm: { type: 'boolean', title: 'Really?' } },
  required: ['confirm'],
};
// Like a model that names its calls itself.
const SAME_ITEM = 'call_stand_in_0';

// Thrown at the current step when the turn ends before its script.
class Ending extends Error {
  constructor(status, message = '') {
    super(message);
    this.status = status;
  }
}

export class Turn {
  id = newId();
  #thread;
  #prompt;
  // {step, kept}: whether it is from an earlier turn.
  #script;
  #begunAt = Date.now();
  #voice;
  // The waiting requests, each with the step that asks again or null.
  #open = new Set();
  #end;
  #ended;

  constructor(thread, input, clientId = null) {
    this.#thread = thread;
    this.#voice = new Voice(thread, this.id);
    this.#prompt = textOf(input);
    this.#ended = new Promise((_, reject) => {
      this.#end = reject;
    });
    // No caller may be waiting.
    this.#ended.catch(() => {});
    thread.store();
    thread.active = this;
    thread.begin(this.#toWire('inProgress', { completedAt: null, durationMs: null }));
    this.#script = [
      ...this.#againFirst(),
      ...parseScript(this.#prompt)
        .filter(({ word }) => word !== 'change')
        .map(fresh),
      ...thread.kept.map((step) => ({ step, kept: true })),
    ];
    this.input = input;
    this.clientId = clientId;
  }

  // The response to turn/start.
  get accepted() {
    return { ...this.#toWire('inProgress', { completedAt: null, durationMs: null }), startedAt: null };
  }

  async play() {
    const { id: threadId } = this.#thread;
    this.#voice.show({ type: 'active', activeFlags: [] });
    notify('turn/started', { threadId, turn: this.#toWire('inProgress', { completedAt: null, durationMs: null }) });
    this.#voice.hear(this.input, this.clientId);
    try {
      await this.#playAll();
      this.#finish('completed');
    } catch (error) {
      if (!(error instanceof Ending)) throw error;
      this.#finish(error.status, error.message);
    }
  }

  // More input of the user while the turn runs.
  steer(input, clientId = null) {
    this.#voice.hear(input, clientId);
    this.#script.push(...parseScript(textOf(input)).map(fresh));
    this.#remember();
  }

  // A running command continues; it can be cleaned up.
  interrupt() {
    this.#end(new Ending('interrupted'));
  }

  async #playAll() {
    while (this.#script.length > 0) {
      const { step } = this.#script.shift();
      // Removed before it runs: if this step kills the process, the next turn continues behind it.
      this.#remember();
      await this.#play(step);
    }
    if (this.#voice.lastMessage === null) this.#voice.say(`Done: ${this.#prompt.slice(0, QUOTED_CHARS)}`);
  }

  async #play(step) {
    switch (step.word) {
      case 'say':
        return this.#voice.say(step.text);
      case 'done':
        return this.#voice.say(JSON.stringify({ done: true, result: step.result }));
      case 'reason':
        return this.#voice.reason(step.text);
      case 'run':
        return this.#run(step.command);
      case 'work':
        return this.#run(`sleep ${step.ms / 1000}`);
      case 'approve':
      case 'approvechanged':
        return this.#approve(step);
      case 'parallel':
        // The second request comes first.
        return Promise.all(step.commands.toReversed().map((command) => this.#approve({ word: 'approve', command })));
      case 'patch':
      case 'hiddenpatch':
      case 'hiddenpatch0':
        return this.#patch(step);
      case 'permissions':
        return this.#permissions(step);
      case 'ask':
        return this.#ask(step);
      case 'input':
        return this.#input(step);
      case 'form':
      case 'form1':
        return this.#form(step);
      case 'fickle':
        return this.#fickle(step);
      case 'oddcall': {
        const item = nextItem('call');
        const call = {
          ...this.#voice.place(),
          callId: nextItem('call'),
          namespace: null,
          tool: 'no_such',
          arguments: {},
        };
        return this.#goOn(item, `Odd call: ${JSON.stringify(await this.#request('item/tool/call', call))}`);
      }
      case 'hugeform':
        return this.#form({ word: 'form', message: 'x'.repeat(step.bytes) });
      case 'noise':
        for (let line = 0; line < step.lines; line += 1)
          if (!this.#voice.show({ type: 'active', activeFlags: [] })) await flush();
        return undefined;
      case 'hang':
        return this.#ended;
      case 'exit':
        await flush();
        return process.exit(step.code);
      case 'kill':
        await flush();
        process.kill(process.pid, 'SIGKILL');
        return this.#ended;
      case 'fail':
        throw new Ending('failed', step.message);
      default:
        throw new Error(`no such step: ${step.word}`);
    }
  }

  #run(command) {
    const id = nextItem('call');
    this.#thread.call(id, 'exec_command', { cmd: command });
    const child = this.#start(command);
    return this.#execute(
      this.#voice.begin({
        ...this.#commandItem(id, command),
        processId: String(child.pid),
        source: 'unifiedExecStartup',
      }),
      child,
    );
  }

  async #approve(step) {
    const { command } = step;
    if (this.#thread.accepted.has(command)) return this.#run(command);
    const id = nextItem('call');
    this.#thread.call(id, 'exec_command', { cmd: command, justification: 'needs to run outside sandbox' });
    this.#voice.show({ type: 'active', activeFlags: ['waitingOnApproval'] });
    const item = this.#voice.begin(this.#commandItem(id, command));
    const amendment = command.split(/\s*(?:&&|[|;&])\s*/)[0].split(/\s+/);
    const { decision } = await this.#request(
      'item/commandExecution/requestApproval',
      {
        kind: 'command',
        ...this.#voice.place(),
        itemId: id,
        startedAtMs: item.startedAtMs,
        environmentId: 'local',
        ...(this.#thread.settings.approvalPolicy === 'untrusted' ? {} : { reason: 'needs to run outside sandbox' }),
        command: item.command,
        cwd: item.cwd,
        commandActions: item.commandActions,
        proposedExecpolicyAmendment: amendment,
        availableDecisions: [
          'accept',
          { acceptWithExecpolicyAmendment: { execpolicy_amendment: amendment } },
          'cancel',
        ],
      },
      { again: step },
    );
    if (!this.#isAccepted(decision, item)) return undefined;
    if (decision === 'acceptForSession') this.#thread.accepted.add(command);
    this.#calm();
    const child = this.#start(command);
    return this.#execute({ ...item, processId: String(child.pid), source: 'unifiedExecStartup' }, child);
  }

  async #patch(step) {
    const path = resolve(this.#thread.settings.cwd, step.path);
    const before = existsSync(path) ? readFileSync(path, 'utf8') : null;
    const after = `${step.content}\n`;
    const id = step.word === 'hiddenpatch0' ? SAME_ITEM : nextItem('call');
    this.#thread.call(id, 'apply_patch', { path, content: after });
    const change = {
      path,
      kind: before === null ? { type: 'add' } : { type: 'update', move_path: null },
      diff: before === null ? after : hunkOf(before, after),
    };
    const body = { type: 'fileChange', id, changes: [change], status: 'inProgress' };
    const key = `patch ${path}`;
    const isAsked = !this.#thread.accepted.has(key);
    if (isAsked) this.#voice.show({ type: 'active', activeFlags: ['waitingOnApproval'] });
    const item = step.word === 'patch' ? this.#voice.begin(body) : stamped(body);
    if (isAsked) {
      const { decision } = await this.#request(
        'item/fileChange/requestApproval',
        { ...this.#voice.place(), itemId: id, startedAtMs: item.startedAtMs, reason: null, grantRoot: null },
        { again: step },
      );
      if (!this.#isAccepted(decision, item)) return;
      if (decision === 'acceptForSession') this.#thread.accepted.add(key);
      this.#calm();
    }
    log({ ...this.#logged('patch'), path });
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, after);
    this.#voice.complete(item, { status: 'completed' });
    this.#thread.called(id, 'Success.');
    this.#voice.tell('turn/diff/updated', {
      diff: `diff --git a/${basename(path)} b/${basename(path)}\n${hunkOf(before ?? '', after)}`,
    });
    this.#voice.pay();
  }

  // True: it is allowed. Otherwise the item has ended and, for `cancel`, the turn.
  #isAccepted(decision, item) {
    if (decision === 'accept' || decision === 'acceptForSession') return true;
    const isRejected = decision === 'decline' || decision === 'cancel';
    this.#voice.complete(item, { status: isRejected ? 'declined' : 'failed' });
    this.#thread.called(item.id, isRejected ? 'rejected by user' : 'approval request failed');
    this.#calm();
    this.#voice.pay();
    if (decision === 'cancel') this.#stopAtQuestion(new Ending('interrupted'));
    return false;
  }

  async #permissions(step) {
    const id = nextItem('call');
    this.#thread.call(id, 'request_permissions', { network: true });
    this.#voice.show({ type: 'active', activeFlags: ['waitingOnApproval'] });
    const { permissions } = await this.#request(
      'item/permissions/requestApproval',
      {
        ...this.#voice.place(),
        itemId: id,
        environmentId: 'local',
        startedAtMs: Date.now(),
        cwd: this.#thread.settings.cwd,
        reason: 'needs the network',
        permissions: { network: { enabled: true }, fileSystem: null },
      },
      { again: step },
    );
    this.#calm();
    this.#goOn(id, permissions?.network?.enabled === true ? 'Permissions: granted' : 'Permissions: refused');
  }

  async #ask({ question, options }) {
    if (!this.#thread.settings.dynamicTools.some(({ name }) => name === 'ask_human'))
      throw new Ending('failed', 'unsupported call: ask_human');
    const parameters = { prompt: question, options };
    const item = this.#voice.begin({
      type: 'dynamicToolCall',
      id: nextItem('call'),
      namespace: null,
      tool: 'ask_human',
      arguments: parameters,
      status: 'inProgress',
      contentItems: null,
      success: null,
      durationMs: null,
    });
    this.#thread.call(item.id, 'ask_human', parameters);
    const { contentItems = [], success = false } = await this.#request('item/tool/call', {
      ...this.#voice.place(),
      callId: item.id,
      namespace: null,
      tool: 'ask_human',
      arguments: parameters,
    });
    this.#voice.complete(item, {
      status: success ? 'completed' : 'failed',
      contentItems,
      success,
      durationMs: Date.now() - item.startedAtMs,
    });
    const answer = contentItems.map(({ text }) => text).join('\n');
    this.#thread.called(item.id, answer);
    this.#voice.pay();
    // Waits for the answer, or receives it.
    if (!/end your turn/i.test(answer))
      return this.#voice.say(success ? `Answer: ${answer}` : `Nobody answers: ${answer}`);
    this.#voice.say('Question asked; ending my turn.');
    return this.#stopAtQuestion(new Ending('completed'));
  }

  async #input({ question, options }) {
    const id = nextItem('call');
    this.#thread.call(id, 'request_user_input', { question, options });
    this.#voice.show({ type: 'active', activeFlags: ['waitingOnUserInput'] });
    const asked = {
      id: 'q1',
      header: 'Question',
      question,
      isOther: true,
      isSecret: false,
      options: options.map((label) => ({ label, description: label })),
    };
    const { answers } = await this.#request('item/tool/requestUserInput', {
      ...this.#voice.place(),
      itemId: id,
      questions: [asked],
      isBlocking: true,
      autoResolutionMs: null,
    });
    this.#calm();
    this.#goOn(id, `Answer: ${answers?.q1?.answers?.join(', ') ?? 'none'}`);
  }

  async #form({ word, message }) {
    const id = nextItem('call');
    this.#thread.call(id, 'form', { message });
    this.#voice.show({ type: 'active', activeFlags: ['waitingOnUserInput'] });
    const { action = 'failed', content = null } = await this.#request('mcpServer/elicitation/request', {
      ...this.#voice.place(),
      serverName: 'stand-in',
      mode: 'form',
      _meta: null,
      message,
      requestedSchema: word === 'form1' ? SMALL_FORM : FORM,
    });
    this.#calm();
    this.#goOn(id, `Form: ${action} ${JSON.stringify(content)}`);
  }

  async #fickle({ ms }) {
    const asked = { id: 'q1', header: 'Hm', question: 'Which?', isOther: true, isSecret: false, options: null };
    const { id } = ask('item/tool/requestUserInput', {
      ...this.#voice.place(),
      itemId: nextItem('call'),
      questions: [asked],
      isBlocking: false,
      autoResolutionMs: ms,
    });
    await Promise.race([new Promise((resolve) => setTimeout(resolve, ms)), this.#ended]);
    withdraw(id);
    this.#voice.say('I decided myself.');
  }

  #goOn(callId, text) {
    this.#thread.called(callId, text);
    this.#voice.pay();
    this.#voice.say(text);
  }

  // The result of a request, {} if it was refused. `again` is repeated if the turn is interrupted here.
  async #request(method, params, { again = null } = {}) {
    const open = { id: null, again };
    this.#open.add(open);
    // Before the request is sent: a client that receives the question may kill this process.
    this.#remember();
    const { id, reply } = ask(method, params);
    open.id = id;
    const { result } = await Promise.race([reply, this.#ended]);
    this.#open.delete(open);
    this.#remember();
    return typeof result === 'object' && result !== null ? result : {};
  }

  // While a request waits, the rest of the script belongs to the next turn, unless this turn continues.
  #remember() {
    const isAsking = this.#open.size > 0;
    this.#thread.keep(this.#script.filter(({ kept }) => isAsking || kept).map(({ step }) => step));
    this.#thread.cutOff([...this.#open].flatMap(({ again }) => again ?? []).toReversed());
  }

  #stopAtQuestion(ending) {
    this.#thread.keep(this.#script.map(({ step }) => step));
    this.#thread.cutOff([]);
    // Everything that runs next to this step ends with it.
    this.#end(ending);
    throw ending;
  }

  // The requests at which the last turn was interrupted come first.
  #againFirst() {
    const { cut } = this.#thread;
    if (cut.length === 0) return [];
    if (/\bdeclined\b/i.test(this.#prompt)) {
      this.#thread.cutOff([]);
      return [fresh({ word: 'say', text: LEFT })];
    }
    if (cut.length > 1) return [fresh({ word: 'parallel', commands: cut.map(({ command }) => command) })];
    const [step] = cut;
    if (step.command === undefined) return [fresh(step)];
    const change = parseScript(this.#prompt).find(({ word }) => word === 'change');
    const command = change ? (change.command ?? `${step.command} # changed`) : (step.other ?? step.command);
    return [fresh({ word: 'approve', command })];
  }

  #start(command) {
    log({ ...this.#logged('command'), command });
    return startCommand(command, { dieWithUs: true, cwd: this.#thread.settings.cwd });
  }

  // Reports the end of the command even if the turn has already ended.
  #execute(item, child) {
    this.#thread.commands.add(child);
    const begunAt = Date.now();
    const reported = child.ended.then(({ text, code }) => {
      this.#thread.commands.delete(child);
      if (text !== '') this.#voice.tell('item/commandExecution/outputDelta', { itemId: item.id, delta: text });
      this.#voice.complete(item, {
        status: code === 0 ? 'completed' : 'failed',
        aggregatedOutput: text,
        exitCode: code,
        durationMs: Date.now() - begunAt,
      });
      this.#thread.called(item.id, `Process exited with code ${code}\nOutput:\n${text}`);
      this.#voice.pay();
    });
    return Promise.race([reported, this.#ended]);
  }

  #commandItem(id, command) {
    return {
      type: 'commandExecution',
      id,
      pluginId: null,
      scriptPath: null,
      command: quoteCommand(command),
      cwd: this.#thread.settings.cwd,
      processId: null,
      source: 'agent',
      status: 'inProgress',
      commandActions: [{ type: 'unknown', command }],
      aggregatedOutput: null,
      exitCode: null,
      durationMs: null,
    };
  }

  #finish(status, message) {
    for (const { id } of this.#open) withdraw(id);
    const thread = this.#thread;
    const threadId = thread.id;
    const error =
      status === 'failed' ? { message, codexErrorInfo: 'other', additionalDetails: null, misalignment: null } : null;
    if (error) {
      this.#voice.show({ type: 'systemError' });
      notify('error', { error, willRetry: false, threadId, turnId: this.id });
    } else if (status === 'completed') this.#voice.pay();
    const turn = {
      ...this.#toWire(status, { completedAt: Math.floor(Date.now() / 1000), durationMs: Date.now() - this.#begunAt }),
      error,
    };
    thread.end(turn);
    if (thread.commands.size === 0) thread.abortCalls();
    thread.active = null;
    if (status !== 'interrupted')
      notify('thread/readState/changed', {
        threadId,
        readState: { firstUnread: { type: 'turn', turnId: thread.turns[0].id }, revision: newId() },
      });
    if (!error) this.#voice.show({ type: 'idle' });
    notify('turn/completed', {
      threadId,
      turn:
        status === 'completed' && this.#voice.lastMessage
          ? { ...turn, items: [this.#voice.lastMessage], itemsView: 'summary' }
          : turn,
    });
  }

  #calm() {
    if (this.#open.size === 0) this.#voice.show({ type: 'active', activeFlags: [] });
  }

  #logged(event) {
    return {
      engine: 'codex-app-server',
      event,
      pid: process.pid,
      argv: process.argv.slice(2),
      cwd: this.#thread.settings.cwd,
      thread: this.#thread.id,
      turn: this.id,
    };
  }

  #toWire(status, { completedAt, durationMs }) {
    return {
      id: this.id,
      rootTurnId: this.id,
      items: [],
      itemsView: 'notLoaded',
      status,
      error: null,
      startedAt: Math.floor(this.#begunAt / 1000),
      completedAt,
      durationMs,
    };
  }
}

const fresh = (step) => ({ step, kept: false });

function textOf(input) {
  return input[0]?.text ?? '';
}

// The whole file as one hunk.
function hunkOf(before, after) {
  const [old, now] = [linesOf(before), linesOf(after)];
  return [
    `@@ -${old.length === 0 ? 0 : 1},${old.length} +1,${now.length} @@`,
    ...old.map((line) => `-${line}`),
    ...now.map((line) => `+${line}`),
    '',
  ].join('\n');
}

function linesOf(text) {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}
