// Decides the tool calls of one turn, for an engine that asks before each of them over HTTP. One call at a time. A
// person's decision is stored as applied before the engine hears of it, and is used once, for exactly the action that
// was shown: a crash afterwards never lets the same call run again without another decision. Without a reply (a
// failure here, an engine that gives up waiting) the engine's own checks deny the call.
import { timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { actionDigest } from '../engines/action-digest.js';
import { joinLines, labelled } from '../engines/approval-text.js';
import type { Permission } from '../engines/engine.js';
import type { GateRules, ToolCall, Verdict } from '../engines/gate.js';
import { toTimestamp } from '../kernel/clock.js';
import { asObject, asString, parseJson, type Json } from '../kernel/json.js';
import { draft } from '../rasp/draft.js';
import type { RaspData } from '../rasp/event.js';
import type { Question } from '../run/interaction.js';
import type { InteractionRecord } from '../store/store.js';
import { checkLease, type TurnContext } from './turn-context.js';

type Decision = RaspData['interaction.approval.applied']['decision'];

// Reading and comparing a larger call would block others for too long; the engine's own checks decide it.
const MAX_BODY_BYTES = 2 * 1024 * 1024;

const REASONS = {
  declined: 'The person declined this call. Continue without it.',
  stopped: 'The person declined this call and stopped the turn. End your turn now, without further tool calls.',
  otherWaits: 'Another call of yours waits for a person. Ask for this one again after its result.',
  questionWaits: 'Your question waits for a person. End your turn now; ask for this call again afterwards.',
  subagent: 'A person has to allow this, and only the main agent can ask. Report back what you wanted to do.',
  unreadable: 'A person has to allow this, and its input is nested too deeply to be shown.',
} as const;

interface StoredDecision {
  readonly interaction: InteractionRecord;
  readonly decision: Decision | null;
  readonly digest: string;
}

export class ToolGate {
  readonly token: string;
  readonly #server: Server;
  readonly #rules: GateRules;
  readonly #permission: Permission;
  #context: TurnContext | null = null;
  // The decision that this turn began with, until it is used.
  #stored: StoredDecision | null = null;
  // The call that waits for a person, and whether a question does.
  #deferred: ToolCall | null = null;
  #asked = false;
  #stopped = false;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(rules: GateRules, permission: Permission, token: string) {
    this.#rules = rules;
    this.#permission = permission;
    this.token = token;
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch(() => response.destroy());
    });
  }

  static async open(rules: GateRules, permission: Permission, token: string): Promise<ToolGate> {
    const gate = new ToolGate(rules, permission, token);
    gate.#server.listen(0, '127.0.0.1');
    await once(gate.#server, 'listening');
    return gate;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  // A person has stopped the turn.
  get stopped(): boolean {
    return this.#stopped;
  }

  // Call it before the engine starts.
  attach(context: TurnContext): void {
    this.#context = context;
    const { answered } = context;
    const { kind, digest } = answered?.question ?? {};
    if (!answered?.resolution || kind !== 'approval' || typeof digest !== 'string') return;
    const decision = asString(asObject(answered.resolution.response)?.decision);
    this.#stored = { interaction: answered, decision: (decision ?? null) as Decision | null, digest };
  }

  // Binds an approval to its action. Output without an init line does not name the folder: that of the run.
  bind(question: Question): Question {
    if (!question.action) return question;
    const folder = question.action.cwd === '' ? (this.#context?.writer.run.spec.cwd ?? '') : null;
    const action = folder === null ? question.action : { ...question.action, cwd: folder };
    const prompt = folder === null ? question.prompt : joinLines(question.prompt, labelled('in', folder));
    return { ...question, prompt, action, digest: actionDigest(action, this.#permission) };
  }

  // May be called again. No call is decided afterwards.
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.#isEngine(request)) return void response.writeHead(401).end();
    const body = await readBody(request);
    if (body === null) return void response.writeHead(413).end();
    const call = this.#rules.readCall(body);
    const deciding = this.#last.then(() => (call === null ? ({ type: 'pass' } as const) : this.#decide(call)));
    this.#last = deciding.catch(() => {});
    const reply = this.#rules.buildReply(await deciding);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
  }

  #isEngine({ headers: { authorization = '' } }: IncomingMessage): boolean {
    const [given, expected] = [Buffer.from(authorization), Buffer.from(`Bearer ${this.token}`)];
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  async #decide(call: ToolCall): Promise<Verdict> {
    // A call that an earlier turn left behind is deferred again before the engine takes up the prompt of this one.
    if (!call.isSubagent && this.#deferred?.prompt !== call.prompt) this.#deferred = null;
    const decided = call.isSubagent ? null : await this.#useDecision(call);
    if (decided !== null) return decided;
    if (this.#rules.isQuestion(call)) {
      if (this.#deferred !== null) return deny('otherWaits');
      this.#asked = true;
      return { type: 'pass' };
    }
    if (!this.#rules.needsPerson(call, this.#permission)) return { type: 'pass' };
    if (call.isSubagent) return deny('subagent');
    if (this.#stopped) return deny('stopped');
    if (this.#asked) return deny('questionWaits');
    if (this.#deferred !== null && this.#deferred.id !== call.id) return deny('otherWaits');
    if (this.#rules.describe(call) === null) return deny('unreadable');
    this.#deferred = call;
    return { type: 'defer' };
  }

  async #useDecision(call: ToolCall): Promise<Verdict | null> {
    const stored = this.#stored;
    const context = this.#context;
    if (!stored || !context) return null;
    const question = this.#rules.describe(call);
    if (question === null || this.bind(question).digest !== stored.digest) return null;
    this.#stored = null;
    const { interaction, decision, digest } = stored;
    if (decision !== null) {
      const { deps, writer } = context;
      checkLease(context);
      const applied_at = toTimestamp(Math.max(deps.clock.now(), writer.run.heads.ts));
      const { interaction_id, resolution } = interaction;
      const data = { interaction_id, decision, digest, applied_at, actor: resolution?.actor ?? undefined };
      await writer.add([draft('interaction.approval.applied', data, { interactionId: interaction_id })]);
      await writer.flush();
    }
    const note = asString(asObject(interaction.resolution?.response)?.note) ?? '';
    if (decision === 'approve' || decision === 'approve_for_session')
      return note === ''
        ? { type: 'allow' }
        : { type: 'allow', note: `The person approved this call. ${noteText(note)}` };
    this.#stopped = decision === 'cancel';
    const { reason } = deny(this.#stopped ? 'stopped' : 'declined');
    return { type: 'deny', reason: note === '' ? reason : `${reason} ${noteText(note)}` };
  }
}

// The engine reaches the gate without the user's proxy, which must not see the token or the calls.
export function withoutProxy(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const names = ['NO_PROXY', 'no_proxy'];
  return Object.fromEntries(names.map((name) => [name, [env[name], '127.0.0.1'].filter(Boolean).join(',')]));
}

function noteText(note: string): string {
  return `Their note: ${note}`;
}

function deny(reason: keyof typeof REASONS): Extract<Verdict, { type: 'deny' }> {
  return { type: 'deny', reason: REASONS[reason] };
}

// Null: it is too large.
async function readBody(request: IncomingMessage): Promise<Json | null | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return parseJson(Buffer.concat(chunks).toString('utf8'));
}
