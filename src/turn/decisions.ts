// The decisions of people in one turn: what each is bound to, and that it is handed to the engine once at most.
import { toTimestamp } from '../kernel/clock.js';
import { invariant } from '../kernel/invariant.js';
import { asObject, type JsonObject } from '../kernel/json.js';
import { draft } from '../rasp/draft.js';
import type { RaspData } from '../rasp/event.js';
import type { Question } from '../run/interaction.js';
import type { Resolution } from '../store/store.js';
import type { TurnScene } from './turn-scene.js';

type Decision = RaspData['interaction.approval.applied']['decision'];

export class Decisions {
  readonly #scene: TurnScene;
  // Made for a process that is gone. It holds in this turn, once, for this very action.
  #stored: { readonly digest: string; readonly resolution: Resolution } | null = null;
  #stopped = false;

  constructor(scene: TurnScene) {
    this.#scene = scene;
  }

  // The person has stopped the turn.
  get stopped(): boolean {
    return this.#stopped;
  }

  // What was decided about the question that the turn answers, if that was one for leave.
  get given(): Decision | null {
    const { answered } = this.#scene;
    return answered?.question.kind === 'approval'
      ? (asObject(answered.resolution?.response)?.decision as Decision)
      : null;
  }

  // Nobody is there any more who could be told: then it is enough that nothing is begun.
  stop(): void {
    this.#stopped = true;
  }

  // For the case that the agent asks again.
  store(): void {
    const { answered } = this.#scene;
    const { digest, action } = answered?.question ?? {};
    if (
      answered?.resolution &&
      this.given !== null &&
      typeof digest === 'string' &&
      this.#carriesOver(asObject(action))
    )
      this.#stored = { digest, resolution: answered.resolution };
  }

  // The stored decision, if this is what it was made about; it is used up then.
  async take(question: Question): Promise<Resolution | null> {
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

  // Stored before it is sent: whatever happens then, it is not sent again.
  async apply(question: Question, { response, actor }: Resolution): Promise<void> {
    const { deps, writer, answered } = this.#scene;
    invariant(answered, 'somebody has decided');
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
    return action !== undefined && this.#scene.engine.resident?.carriesOver(action) === true;
  }

  digestOf({ action = {} }: Question): string {
    const { engine, writer } = this.#scene;
    invariant(engine.resident, 'only an engine that stays asks for leave');
    return engine.resident.digest(action, writer.run.spec.permission);
  }
}
