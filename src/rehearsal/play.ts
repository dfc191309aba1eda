// Plays one turn: the script of the prompt, then what an earlier one left for after its question. It executes nothing,
// and writes nothing but its session.
import { asObject, parseJson, type Json } from '../kernel/json.js';
import type { Call } from './arguments.js';
import { parseDirectives } from './directives.js';
import { buildScene, quote, type Part } from './scene.js';
import { createSession, loadSession, saveSession, type Session } from './session.js';
import { Voice } from './voice.js';

// Everything that a turn needs of the outside.
export interface Stage {
  readonly home: string;
  newId(): string;
  readPrompt(): Promise<string>;
  // Both wait until the reader took the bytes.
  print(bytes: string | Buffer): Promise<void>;
  complain(bytes: string | Buffer): Promise<void>;
  sleep(ms: number): Promise<void>;
  hang(): Promise<never>;
  // By SIGKILL.
  crash(): Promise<never>;
}

// Multi-byte and combining characters, a line separator, an emoji of several code points.
const UTF8_TEXT = 'Grüße 漢字 e\u0301 a\u2028b 👩‍👩‍👧 🚀';
const NOT_UTF8 = Buffer.from([0xff, 0x0a]);

// Resolves to the exit code.
export async function playTurn(call: Call, stage: Stage): Promise<number> {
  const prompt = await stage.readPrompt();
  const session =
    call.resume === undefined
      ? createSession(stage.home, call.newSession ?? stage.newId())
      : loadSession(stage.home, call.resume);
  if (!session)
    return refuse(
      stage,
      call.resume === undefined
        ? `Error: a new session cannot have the id ${call.newSession}`
        : `Error: session ${call.resume} not found`,
    );
  return new Turn(call, stage, session, prompt).play();
}

async function refuse(stage: Stage, reason: string): Promise<number> {
  await stage.complain(`${reason}\n`);
  return 1;
}

class Turn {
  readonly #call: Call;
  readonly #stage: Stage;
  readonly #prompt: string;
  readonly #voice: Voice;
  readonly #script: readonly Part[];
  // Where in the script begins what an earlier prompt left.
  readonly #own: number;
  #session: Session;

  constructor(call: Call, stage: Stage, session: Session, prompt: string) {
    const own = scriptOf(prompt, session);
    this.#call = call;
    this.#stage = stage;
    this.#session = session;
    this.#prompt = prompt;
    this.#voice = new Voice(stage);
    this.#script = [...own, ...session.script];
    this.#own = own.length;
  }

  async play(): Promise<number> {
    const ahead = this.#script.slice(0, this.#endOfTurn());
    const refused = ahead.findIndex(({ type }) => type === 'refuse');
    const { resume, model } = this.#call;
    if (resume !== undefined && refused >= 0) {
      if (refused >= this.#own) this.#save({ script: this.#script.toSpliced(refused, 1).slice(this.#own) });
      return refuse(this.#stage, `Error: session ${resume} not found`);
    }
    this.#save({ asked: false });
    const isOther = resume !== undefined && ahead.some(({ type }) => type === 'othersession');
    if (!ahead.some(({ type }) => type === 'nosession'))
      await this.#voice.session(isOther ? this.#stage.newId() : this.#session.id, model);
    return this.#playScript();
  }

  async #playScript(): Promise<number> {
    for (const [index, part] of this.#script.entries()) {
      // Removed from the stored script before it is executed: if this part kills the process, the next turn continues
      // after it.
      if (index >= this.#own) this.#save({ script: this.#script.slice(index + 1) });
      const code = await this.#playPart(part, this.#script.slice(index + 1));
      if (code !== undefined) return code;
    }
    if (this.#voice.isSilent) await this.#voice.say('That was all.');
    return this.#end();
  }

  // Resolves to the exit code if the turn ends here.
  async #playPart(part: Part, rest: readonly Part[]): Promise<number | undefined> {
    const voice = this.#voice;
    switch (part.type) {
      case 'answer':
        await voice.say(part.text);
        break;
      case 'stream':
        await voice.stream(part.text);
        break;
      case 'take_up':
        await this.#takeUp(part.done);
        break;
      case 'done':
        await voice.done(part.result);
        break;
      case 'tool':
        await voice.tool(part.command);
        break;
      case 'file':
        await voice.file(part.name, this.#call.permission !== 'read-only');
        break;
      case 'orphan':
        await voice.say('An engine might leave a process running here. A rehearsal starts none.');
        break;
      case 'utf8':
        await voice.say(UTF8_TEXT);
        await this.#stage.complain(NOT_UTF8);
        break;
      case 'events':
        await voice.events(part.count, part.bytes);
        break;
      case 'stderr':
        for (let line = 1; line <= part.lines; line += 1)
          await this.#stage.complain(`rehearsal: line ${line} of ${part.lines}\n`);
        break;
      case 'sleep':
        await this.#stage.sleep(part.ms);
        break;
      case 'ask':
        this.#save({ asked: true, script: rest });
        await voice.ask(part.question, part.options);
        return this.#end();
      case 'approve':
        return this.#approve(part.command, rest);
      case 'decided':
        return this.#applyDecision(part.command);
      case 'fail':
        await voice.fail('The script says that this turn fails.');
        return 1;
      case 'exit0':
        return 0;
      case 'hang':
        return this.#stage.hang();
      case 'crash':
        return this.#stage.crash();
      // They speak of the turn as a whole.
      case 'nosession':
      case 'othersession':
      case 'refuse':
        break;
      default:
        part satisfies never;
    }
    return undefined;
  }

  async #takeUp(done: boolean): Promise<void> {
    await this.#voice.stream(
      `You answered "${quote(this.#prompt)}". ${done ? 'So I go on, and the rehearsal is over.' : 'What else?'}`,
    );
    if (done) await this.#voice.done({ rehearsal: true, answer: withoutRules(this.#prompt) });
  }

  async #approve(command: string, rest: readonly Part[]): Promise<number | undefined> {
    if (this.#session.allowed.includes(command)) {
      await this.#voice.tool(command);
      return undefined;
    }
    this.#save({ asked: true, script: [{ type: 'decided', command }, ...rest] });
    await this.#voice.approve(command);
    return this.#end();
  }

  // Any reply that is not an approval declines.
  async #applyDecision(command: string): Promise<number | undefined> {
    const decision = decisionOf(this.#prompt);
    const approved = decision === 'approve' || decision === 'approve_for_session';
    if (decision === 'approve_for_session') this.#save({ allowed: [...this.#session.allowed, command] });
    if (approved) await this.#voice.tool(command);
    else await this.#voice.declinedTool(command);
    if (decision !== 'cancel') return undefined;
    this.#save({ script: [] });
    await this.#voice.say('I stop here.');
    return this.#end();
  }

  async #end(): Promise<number> {
    await this.#voice.end(this.#prompt);
    return 0;
  }

  // A turn ends with its first question; what follows belongs to the next.
  #endOfTurn(): number {
    const question = this.#script.findIndex(
      (part) => part.type === 'ask' || (part.type === 'approve' && !this.#session.allowed.includes(part.command)),
    );
    return question < 0 ? this.#script.length : question;
  }

  #save(changes: Partial<Session>): void {
    this.#session = { ...this.#session, ...changes };
    saveSession(this.#stage.home, this.#session);
  }
}

// A prompt without directives is the reply to an open question; without one it starts the default scene.
function scriptOf(prompt: string, { asked, script }: Session): readonly Part[] {
  const steps = parseDirectives(prompt);
  if (steps.length > 0 || script.length > 0) return steps;
  return asked ? [{ type: 'take_up', done: false }] : buildScene(prompt);
}

function decisionOf(prompt: string): Json | undefined {
  return asObject(parseJson(prompt))?.decision;
}

// Parley adds its rules behind a line of dashes when a prompt begins a run.
function withoutRules(prompt: string): string {
  return (prompt.split('\n\n---\n', 1)[0] ?? '').trim();
}
