// Folds the events of a run into the rows of its conversation, each in constant time. Pure: it reads no clock and draws
// nothing, so it can be tested without a page.
import type { FcmpData, FcmpEvent } from '../../../src/fcmp/event.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import { readEngineDetail, splitDoneMarker, type EngineDetail } from '../../../src/fcmp/engine-details.js';
import type { DetailsRow, MessageRow, PlanRow, QuestionRow, Row, ToolRow } from './run-rows.js';
import { isEnd, RunPath } from './run-path.js';

type Body<R> = R extends Row ? Omit<R, 'key' | 'attempt' | 'at' | 'rev' | 'rasp'> : never;
type Usage = FcmpData['usage'];

const SUMMED = [
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'total_tokens',
  'cost_usd',
] as const;

export class RunModel {
  readonly rows: Row[] = [];
  readonly path = new RunPath();
  // The seq of the last event.
  seq = 0;
  #event: FcmpEvent | null = null;
  // The messages of this turn. Engines reuse their IDs in the next turn.
  readonly #messages = new Map<string | null, MessageRow>();
  // A call may start in one turn and end in the next, after a person was asked.
  readonly #tools = new Map<string, ToolRow>();
  readonly #questions = new Map<string, QuestionRow>();
  #plan: PlanRow | null = null;
  #waitedMs = 0;
  // The engine details of this turn.
  #details: DetailsRow | null = null;
  // Usage of the turn, added when the turn ends.
  #usage: { best: Usage; steps: Usage | null; rasp: number[] } | null = null;

  // The question that waits for a person, if there is one.
  get pending(): QuestionRow | null {
    for (const row of this.#questions.values()) if (row.resolution.type === 'pending') return row;
    return null;
  }

  push(event: FcmpEvent): void {
    this.seq = event.seq;
    this.#event = event;
    this.#apply(event);
  }

  #apply({ type, data, ts }: FcmpEvent): void {
    const kind = type as keyof FcmpData;
    const as = <T extends keyof FcmpData>(_kind: T): FcmpData[T] => data as unknown as FcmpData[T];
    switch (kind) {
      case 'conversation.started':
        return this.path.begin(ts);
      case 'conversation.state.changed':
        return this.#changeState(as(kind));
      case 'user.message':
        return void this.#add({ type: 'user', text: as(kind).text });
      case 'assistant.message.delta':
        return this.#grow(as(kind));
      case 'assistant.message.final':
        return this.#finishMessage(as(kind));
      case 'assistant.reasoning':
        return this.#reason(as(kind).text);
      case 'assistant.plan':
        return this.#planned(as(kind).items);
      case 'assistant.tool.started':
        return this.#toolStarted(as(kind));
      case 'assistant.tool.completed':
        return this.#toolCompleted(as(kind));
      case 'artifact.file.changed':
        return this.#changed(as(kind));
      case 'usage':
        return this.#used(as(kind));
      case 'user.input.required':
        return this.#asked(as(kind));
      case 'interaction.reply.accepted': {
        const { interaction_id: id, accepted_at: at, actor, response, finish = false, review } = as(kind);
        return this.#resolve(id, { type: 'answered', at, by: actor?.name ?? null, response, finish, review });
      }
      case 'interaction.auto_decide.timeout': {
        const { interaction_id: id, policy, response } = as(kind);
        return this.#resolve(id, { type: 'decided', at: ts, policy, response });
      }
      case 'diagnostic.warning':
      case 'raw.stdout':
      case 'raw.stderr':
        return this.#addDetail(readEngineDetail({ type, data }));
      case 'conversation.completed':
        return this.#ended({ state: 'succeeded', result: as(kind).result });
      case 'conversation.failed':
        return this.#ended({ state: 'failed', error: as(kind).error });
      case 'conversation.canceled':
        return this.#ended({ state: 'canceled', by: as(kind).actor?.name });
      default:
        kind satisfies never;
        this.#add({ type: 'unknown', name: type, data });
    }
  }

  #add<R extends Row = Row>(body: Body<R>): R {
    const { seq, ts, attempt_number: attempt, rasp_seq: rasp } = this.#event as FcmpEvent;
    // One event adds up to two rows: the usage of the turn, and its own row.
    const key = this.rows.at(-1)?.key === String(seq) ? `${seq}+` : String(seq);
    const row = { ...body, key, attempt, at: ts, rev: 0, rasp: [rasp] } as unknown as R;
    this.rows.push(row);
    return row;
  }

  #touch(row: Row): void {
    row.rev += 1;
    const { rasp_seq: rasp } = this.#event as FcmpEvent;
    if (row.rasp.at(-1) !== rasp) row.rasp.push(rasp);
  }

  #lastIf<T extends Row['type']>(type: T): Extract<Row, { type: T }> | null {
    const row = this.rows.at(-1);
    return row?.type === type && row.attempt === this.#event?.attempt_number
      ? (row as Extract<Row, { type: T }>)
      : null;
  }

  #grow({ message_id: id, text }: FcmpData['assistant.message.delta']): void {
    const row = this.#messages.get(id);
    if (!row)
      return void this.#messages.set(
        id,
        this.#add<MessageRow>({ type: 'message', text, state: 'growing', isTruncated: false }),
      );
    row.text += text;
    this.#touch(row);
  }

  #finishMessage({ message_id: id, text, truncated = false }: FcmpData['assistant.message.final']): void {
    const row = this.#messages.get(id);
    const shown = this.#withoutMarker(text);
    // The message consists only of the marker.
    if (!row && shown === '' && text !== '') return;
    if (!row)
      return void this.#add<MessageRow>({ type: 'message', text: shown, state: 'whole', isTruncated: truncated });
    this.#messages.delete(id);
    // The pieces of a truncated message have more text.
    if (!truncated) row.text = shown;
    row.state = 'whole';
    row.isTruncated = truncated;
    this.#touch(row);
  }

  #reason(text: string): void {
    const last = this.#lastIf('reasoning');
    if (!last) return void this.#add({ type: 'reasoning', text });
    last.text += `\n\n${text}`;
    this.#touch(last);
  }

  #planned(items: PlanRow['items']): void {
    if (this.#plan && this.#plan === this.#lastIf('plan')) {
      this.#plan.items = items;
      return this.#touch(this.#plan);
    }
    if (this.#plan) {
      this.#plan.isOld = true;
      this.#plan.rev += 1;
    }
    this.#plan = this.#add<PlanRow>({ type: 'plan', items, isOld: false });
  }

  #toolStarted({ call_id: id, name, kind, input }: FcmpData['assistant.tool.started']): void {
    const key = id ?? `?${name}`;
    const before = this.#tools.get(key);
    if (before) markUnfinished(before);
    this.#tools.set(
      key,
      this.#add<ToolRow>({
        type: 'tool',
        name,
        kind,
        input,
        status: 'running',
        output: undefined,
        error: undefined,
        exitCode: undefined,
        durationMs: undefined,
      }),
    );
  }

  #toolCompleted({
    call_id: id,
    name,
    kind,
    status,
    output,
    error,
    exit_code: exitCode,
    duration_ms: durationMs,
  }: FcmpData['assistant.tool.completed']): void {
    const key = id ?? `?${name}`;
    const row = this.#tools.get(key);
    this.#tools.delete(key);
    if (!row)
      return void this.#add<ToolRow>({
        type: 'tool',
        name,
        kind,
        input: null,
        status,
        output,
        error,
        exitCode,
        durationMs,
      });
    Object.assign(row, { status, output, error, exitCode, durationMs });
    this.#touch(row);
  }

  #changed(file: FcmpData['artifact.file.changed']): void {
    const last = this.#lastIf('files');
    if (!last) return void this.#add({ type: 'files', files: [file] });
    last.files.push(file);
    this.#touch(last);
  }

  // One row per turn, at the position of the first detail.
  #addDetail(detail: EngineDetail | null): void {
    if (!detail) return;
    const { attempt_number: attempt } = this.#event as FcmpEvent;
    const known = this.#details?.attempt === attempt ? this.#details : null;
    const row = known ?? this.#add<DetailsRow>({ type: 'details', details: [], counts: {} });
    this.#details = row;
    row.details.push(detail);
    row.counts[detail.kind] = (row.counts[detail.kind] ?? 0) + 1;
    this.#touch(row);
  }

  // Moves the done marker to the details and returns the rest of the message.
  #withoutMarker(text: string): string {
    const { text: rest, marker } = splitDoneMarker(text);
    if (marker !== null) this.#addDetail({ kind: 'done', text: marker });
    return rest;
  }

  // Prefers the usage of the turn, then that of the conversation so far, then the sum of its steps.
  #used(usage: Usage): void {
    const kept = this.#usage ?? { best: usage, steps: null, rasp: [] };
    if (usage.scope === 'step') kept.steps = kept.steps ? sum(kept.steps, usage) : usage;
    if (usage.scope === 'turn' || (usage.scope === 'thread' && kept.best.scope !== 'turn')) kept.best = usage;
    else if (kept.best.scope === 'step' && kept.steps) kept.best = kept.steps;
    kept.rasp.push(this.#event?.rasp_seq ?? 0);
    this.#usage = kept;
  }

  #addUsage(): void {
    if (!this.#usage) return;
    const { best, rasp } = this.#usage;
    this.#usage = null;
    const row = this.#add({ type: 'usage', usage: best });
    row.rasp.splice(0, 1, ...rasp);
  }

  #asked({ interaction_id: interactionId, ...question }: FcmpData['user.input.required']): void {
    this.#addUsage();
    this.#questions.set(
      interactionId,
      this.#add<QuestionRow>({
        type: 'question',
        interactionId,
        question: question as unknown as JsonObject,
        resolution: { type: 'pending' },
      }),
    );
  }

  #resolve(id: string, resolution: QuestionRow['resolution']): void {
    const row = this.#questions.get(id);
    if (!row) return;
    row.resolution = resolution;
    this.#touch(row);
    this.#questions.delete(id);
  }

  #changeState(change: FcmpData['conversation.state.changed']): void {
    if (change.from === 'running') this.#endTurn(change.to === 'failed' || change.to === 'canceled' ? 'cut' : 'whole');
    const lastedMs = this.path.move(change);
    if (change.to === 'queued') this.#waitedMs = lastedMs;
    if (change.to === 'running' && this.path.attempts.length > 1)
      this.#add({ type: 'attempt', number: this.path.attempts.length, waitedMs: this.#waitedMs });
    if (isEnd(change.to)) this.#endAll();
  }

  #endTurn(state: MessageRow['state']): void {
    this.#addUsage();
    for (const row of this.#messages.values()) {
      row.state = state;
      row.rev += 1;
    }
    this.#messages.clear();
  }

  #ended(end: Extract<Row, { type: 'end' }>['end']): void {
    this.#endTurn(end.state === 'succeeded' ? 'whole' : 'cut');
    this.#add({ type: 'end', end });
  }

  #endAll(): void {
    for (const row of this.#tools.values()) markUnfinished(row);
    this.#tools.clear();
    for (const row of this.#questions.values()) {
      row.resolution = { type: 'gone' };
      row.rev += 1;
    }
    this.#questions.clear();
  }
}

function markUnfinished(row: ToolRow): void {
  row.status = 'unfinished';
  row.rev += 1;
}

function sum(a: Usage, b: Usage): Usage {
  const both = SUMMED.filter((name) => a[name] !== undefined || b[name] !== undefined);
  return { ...b, ...Object.fromEntries(both.map((name) => [name, (a[name] ?? 0) + (b[name] ?? 0)])) };
}
