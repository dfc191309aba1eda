// Ends a running turn from outside. The request may arrive before the turn has a process or a writer.
import type { EndReason } from '../process/child.js';
import type { Actor, CancelRequest } from '../store/store.js';

export interface TurnRecorder {
  flush(): Promise<void>;
  recordCancel(request: CancelRequest): Promise<void>;
}

interface Endable {
  // Only the first reason has an effect.
  end(reason: EndReason): void;
}

type Reason = 'canceled' | 'shutdown' | 'runaway' | 'other_session';

export class TurnControl {
  #child: Endable | null = null;
  #reason: Reason | null = null;
  #writer: TurnRecorder | null = null;
  #canceling: CancelRequest | null = null;
  canceledBy: Actor | undefined;
  isLost = false;

  get wantsShutdown(): boolean {
    return this.#reason === 'shutdown';
  }

  // Resolves when the request is stored and the engine is being ended. A request that could not be stored ends the
  // engine as well: the writer reports its own failure.
  async cancel(request: CancelRequest): Promise<void> {
    if (this.#reason === null && this.#canceling === null) this.canceledBy = request.actor ?? undefined;
    this.#canceling ??= request;
    await this.#writer?.recordCancel(request).catch(() => {});
    this.#end('canceled');
  }

  shutdown(): void {
    this.#end('shutdown');
  }

  // This host no longer owns the turn: ends it and stores nothing.
  lose(): void {
    this.isLost = true;
    this.#end('shutdown');
  }

  attachWriter(writer: TurnRecorder): void {
    this.#writer = writer;
    if (this.#canceling) void writer.recordCancel(this.#canceling).catch(() => {});
  }

  // This process has crashed: stores the buffered events and ends the engine. The end of the turn is not stored, so the
  // next start finds the run running and recovers it.
  async abandon(): Promise<void> {
    this.isLost = true;
    await this.#writer?.flush().catch(() => {});
    this.lose();
  }

  // The engine would continue forever without making progress.
  stopRunaway(): void {
    this.#end('runaway');
  }

  // The engine works in a different conversation than the one it should continue.
  stopOtherSession(): void {
    this.#end('other_session');
  }

  attach(child: Endable): void {
    this.#child = child;
    if (this.#reason !== null) child.end(this.#reason);
  }

  #end(reason: Reason): void {
    this.#reason ??= reason;
    this.#child?.end(this.#reason);
  }
}
