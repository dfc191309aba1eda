// Forwards the check of a run to the host that has its files. A check may take minutes and wait before it, so it is
// always forwarded with its progress, and only silence ends it. Callers that do not ask for the progress get only the
// result.
import { Readable } from 'node:stream';
import type { Values } from '../../kernel/fill-template.js';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestErrorCode } from '../../contract/error-codes.js';
import { RequestError, refusal } from '../../run/request-error.js';
import { Alarm, type Timers } from '../../process/timers.js';
import type { Store } from '../../store/store.js';
import { envelope } from '../api/error-envelope.js';
import { leftSignal } from '../streams/left-signal.js';
import { fetchForwarded, findFiles, passOn, PATIENCE_MS, type OtherHosts } from './forward-files.js';
import type { VerifyLine } from './verify-lines.js';

export function forwardVerify(store: Store, hosts: OtherHosts | null, timers: Timers) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const url = await findFiles(store, hosts, request);
    if (url === null || hosts === null) return undefined;
    const { id } = request.params as { readonly id: string };
    const { progress } = request.query as { readonly progress?: string };
    const silence = new Silence(timers, leftSignal(reply));
    const answer = await fetchForwarded(
      `${url}/v1/runs/${encodeURIComponent(id)}/verify?progress=true`,
      hosts.token,
      silence.signal,
    ).catch(() => null);
    if (!answer) {
      silence.end();
      throw refusal('FILES_UNREACHABLE.host', { run: id });
    }
    // A refusal.
    if (!answer.ok) {
      silence.end();
      return passOn(answer, reply);
    }
    const lines = readLines(answer, id, silence);
    if (progress === 'true')
      return reply.type('application/x-ndjson').send(Readable.from(lines, { objectMode: false }) as never);
    let last = '';
    for await (const line of lines) last = line;
    const end = JSON.parse(last) as VerifyLine;
    if (end.type === 'error') throw refusedBy(end.error);
    const { type: _type, ...result } = end;
    return reply.send(result);
  };
}

// The refusal of another host as one of this host.
function refusedBy({ code, message, hint, values, details }: Extract<VerifyLine, { type: 'error' }>['error']): Error {
  // Phrases of another host are rendered by functions that accept anything.
  const options = { ...(hint === undefined ? {} : { hint }), values: (values ?? {}) as Values };
  return Object.assign(new RequestError(code as RequestErrorCode, message, options), { details });
}

// Yields complete lines. The last one is the result or an error, also if the connection breaks off.
async function* readLines(answer: Response, runId: string, silence: Silence): AsyncGenerator<string> {
  let isDone = false;
  try {
    let rest = '';
    const decoder = new TextDecoder();
    for await (const bytes of answer.body ?? []) {
      silence.heard();
      const lines = (rest + decoder.decode(bytes as Uint8Array, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const { type } = JSON.parse(line) as VerifyLine;
        isDone = type === 'result' || type === 'error';
        yield `${line}\n`;
      }
    }
  } catch {
    // Reported below, like an end without a result.
  } finally {
    silence.end();
  }
  const error: VerifyLine = { type: 'error', ...envelope(refusal('FILES_UNREACHABLE.host', { run: runId })) };
  if (!isDone) yield `${JSON.stringify(error)}\n`;
}

// Aborts when the host has sent nothing for too long, or nobody waits for its answer any more.
class Silence {
  readonly #controller = new AbortController();
  readonly #alarm: Alarm;

  constructor(timers: Timers, left: AbortSignal) {
    this.#alarm = new Alarm(timers);
    if (left.aborted) this.#controller.abort();
    left.addEventListener('abort', () => this.#controller.abort(), { once: true });
    this.heard();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  heard(): void {
    this.#alarm.set(PATIENCE_MS, () => this.#controller.abort());
  }

  end(): void {
    this.#alarm.clear();
  }
}
