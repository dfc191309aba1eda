// The decisions of people in one turn. Binds each to its action and sends it to the engine at most once.
import { toTimestamp } from '../../kernel/clock.js';
import { invariant } from '../../kernel/invariant.js';
import { asObject, type JsonObject } from '../../kernel/json.js';
import { draft } from '../../rasp/draft.js';
import type { RaspData } from '../../rasp/event.js';
import type { Question } from '../../run/interaction.js';
import type { Resolution } from '../../store/store.js';
import type { TurnContext } from '../turn-context.js';

type Decision = RaspData['interaction.approval.applied']['decision'];

export class Decisions {
  readonly #context: TurnContext;
  // A decision about a request of a process that has exited. Valid in this turn, once, for the same action.
  #stored: { readonly digest: string; readonly resolution: Resolution } | null = null;
  #stopped = false;

  constructor(context: TurnContext) {
    this.#context = context;
  }

  // A person has stopped the turn.
  get stopped(): boolean {
    return this.#stopped;
  }

  // The decision that this turn was started with; null if the question was no approval.
  get decision(): Decision | null {
    const { answered } = this.#context;
    return answered?.question.kind === 'approval'
      ? (asObject(answered.resolution?.response)?.decision as Decision)
      : null;
  }

  // For a process that has exited: there is nothing to send.
  stop(): void {
    this.#stopped = true;
  }

  // Keeps the decision in case the agent asks for the same action again.
  store(): void {
    const { answered } = this.#context;
    const { digest, action } = answered?.question ?? {};
    if (
      answered?.resolution &&
      this.decision !== null &&
      typeof digest === 'string' &&
      this.#carriesOver(asObject(action))
    )
      this.#stored = { digest, resolution: answered.resolution };
  }

  // Returns the kept decision if it is about this question, and drops it.
  async consume(question: Question): Promise<Resolution | null> {
    const stored = this.#stored;
    if (
      !stored ||
      question.kind !== 'approval' ||
      !this.#carriesOver(question.action) ||
      this.digestOf(question) !== stored.digest
    )
      return null;
    this.#stored = null;
    await this.apply(question, stored.resolution);
    return stored.resolution;
  }

  // Stores that the decision is applied. Call it before sending, so that a crash never sends it twice.
  async apply(question: Question, { response, actor }: Resolution): Promise<void> {
    const { deps, writer, answered } = this.#context;
    invariant(answered, 'a person has decided');
    const decision = asObject(response)?.decision as Decision;
    const applied_at = toTimestamp(Math.max(deps.clock.now(), writer.run.heads.ts));
    await writer.add([
      draft(
        'interaction.approval.applied',
        {
          interaction_id: answered.interaction_id,
          decision,
          digest: this.digestOf(question),
          applied_at,
          actor: actor ?? undefined,
        },
        { interactionId: answered.interaction_id },
      ),
    ]);
    await writer.flush();
    if (decision === 'cancel') this.#stopped = true;
  }

  #carriesOver(action: JsonObject | undefined): boolean {
    return action !== undefined && this.#context.engine.resident?.carriesOver(action) === true;
  }

  digestOf({ action = {} }: Question): string {
    const { engine, writer } = this.#context;
    invariant(engine.resident, 'only a resident engine asks for approval');
    return engine.resident.digest(action, writer.run.spec.permission);
  }
}
