// How a turn that runs is ended from outside. The wish may come before the process is there.
import type { EndReason } from '../process/child.js';
import type { Actor } from '../store/store.js';

interface Endable {
  // The first reason counts.
  end(reason: EndReason): void;
}

type Reason = 'canceled' | 'shutdown' | 'runaway' | 'other_session';

export class TurnControl {
  #child: Endable | null = null;
  #reason: Reason | null = null;
  #flush: () => Promise<void> = async () => {};
  canceledBy: Actor | undefined;
  isLost = false;

  get wantsShutdown(): boolean {
    return this.#reason === 'shutdown';
  }

  cancel(actor: Actor | undefined): void {
    if (this.#reason === null) this.canceledBy = actor;
    this.#end('canceled');
  }

  shutdown(): void {
    this.#end('shutdown');
  }

  // The turn is not this host's any more: it is ended, and nothing is stored of that.
  lose(): void {
    this.isLost = true;
    this.#end('shutdown');
  }

  // What stores the events of the turn that wait to be stored.
  onAbandon(flush: () => Promise<void>): void {
    this.#flush = flush;
  }

  // This process has crashed: the events that wait are stored, and the engine is ended. The end of the turn is not
  // stored: the next start finds it running, and knows what that means.
  async abandon(): Promise<void> {
    this.isLost = true;
    await this.#flush().catch(() => {});
    this.lose();
  }

  // The engine would go on for ever without getting anywhere.
  stopRunaway(): void {
    this.#end('runaway');
  }

  // The engine works in another conversation than the one it was to continue.
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
