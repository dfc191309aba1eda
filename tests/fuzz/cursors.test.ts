// The cursor of a stream, in any place and of any form: a documented refusal, or exactly the events after it.
import { get } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.js';
import { openCuttingProxy } from '../support/cutting-proxy.js';
import { fuzz, PATIENCE_MS, pick, type Random } from '../support/fuzz.js';
import { expectRefused } from '../support/raw-http.js';
import { serve, type Served } from '../support/served.js';

const ENDED = 'One more thing [[event]] done';

interface Run {
  readonly id: string;
  readonly isEnded: boolean;
  readonly lines: Readonly<Record<'events' | 'rasp', readonly string[]>>;
}

let served: Served;
let runs: Run[];
beforeAll(async () => {
  served = await serve();
  runs = await Promise.all(
    [ENDED, '[[ask Which?|a|b]]'].map(async (prompt) => {
      const { run_id: id } = await served.client.create({
        engine: 'codex',
        prompt,
        execution_mode: prompt === ENDED ? 'auto' : 'interactive',
      });
      const { status } = await served.bench.orchestrator.waitUntilIdle(id);
      const read = (protocol: 'fcmp' | 'rasp') => served.bench.data.store.readJournal(id, protocol, { limit: 100_000 });
      return {
        id,
        isEnded: status !== 'waiting_user',
        lines: { events: await read('fcmp'), rasp: await read('rasp') },
      };
    }),
  );
  expect(runs.map(({ isEnded }) => isEnded)).toEqual([true, false]);
});
afterAll(() => served.close());

const NONSENSE = [
  '',
  ' ',
  '-1',
  '-0',
  '+1',
  '1.0',
  '1.5',
  '1e2',
  '0x2',
  'NaN',
  'Infinity',
  '1e999',
  '9007199254740991',
  '9007199254740992',
  '9'.repeat(400),
  '٣',
  'abc',
  'null',
  '1,2',
  '1 2',
  '%00',
  '%ff',
  '01',
  '00',
  'run_00000000000000000000000000',
  '1;2',
  '[1]',
];

function anyCursor(random: Random): string {
  const heads = runs.flatMap(({ lines }) => [lines.events.length, lines.rasp.length]);
  return random(3) === 0
    ? pick(random, NONSENSE)
    : String(
        pick(random, [0, 1, random(40), ...heads, ...heads.map((head) => head - 1), ...heads.map((head) => head + 1)]),
      );
}

interface Heard {
  readonly status: number;
  readonly text: string;
}

// Reads until the stream has ended or everything has come.
function hear(path: string, lastEventId: string | null, isAll: (text: string) => boolean): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const asked = get(
      `${served.url}${path}`,
      {
        agent: false,
        headers: {
          authorization: `Bearer ${served.token}`,
          ...(lastEventId === null ? {} : { 'last-event-id': lastEventId }),
        },
      },
      (response) => {
        let text = '';
        const { statusCode: status = 0 } = response;
        const done = (): void => resolve({ status, text });
        response
          .setEncoding('utf8')
          .on('data', (chunk: string) => {
            text += chunk;
            if (status !== 200 || !isAll(text)) return;
            done();
            response.destroy();
          })
          .on('end', done)
          .on('error', done);
      },
    );
    asked.on('error', reject);
  });
}

// The position of a cursor, or null for an invalid one.
function expectedCursor(query: string | null, header: string | null): number | null {
  if (header !== null && header !== '') return /^\d{1,15}$/.test(header) ? Number(header) : null;
  if (query === null) return 0;
  const text = decodeURIComponent(query.replaceAll('%ff', 'x'));
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

test(
  'on the journals: in the address, in the header, in both and in neither',
  async () => {
    await fuzz('cursors', 250, async (random) => {
      const { id, isEnded, lines } = pick(random, runs);
      const kind = pick(random, ['events', 'rasp'] as const);
      const query = random(3) === 0 ? null : anyCursor(random).replaceAll(' ', '%20');
      // Spaces around it are not part of a header.
      const header =
        random(2) === 0
          ? null
          : anyCursor(random)
              .replaceAll(/[^ -~]/g, '?')
              .trim();
      const path = `/v1/runs/${id}/${kind}${query === null ? '' : `?cursor=${query}`}`;
      const expected = expectedCursor(query, header);
      // The URL is checked even if the header takes precedence.
      const isRefused = expected === null || expectedCursor(query, null) === null;
      const stored = lines[kind];
      const frames = stored
        .slice(expected ?? 0)
        .map((line, index) => `id: ${(expected ?? 0) + index + 1}\ndata: ${line}\n\n`)
        .join('');
      const { status, text } = await hear(path, header, (heard) => !isEnded && heard === `retry: 1000\n\n${frames}`);
      const what = `${path} and ${JSON.stringify(header)}: ${status} ${text.slice(0, 200)}`;
      if (isRefused) expectRefused({ status, body: text }, 'INVALID_ARGUMENT');
      else if ((expected ?? 0) > stored.length) expectRefused({ status, body: text }, 'CURSOR_BEYOND_END');
      else if (isEnded && header !== null && header !== '' && expected === stored.length)
        expect([status, text], what).toEqual([204, '']);
      else {
        expect(status, what).toBe(200);
        expect(text.startsWith(`retry: 1000\n\n${frames}`), what).toBe(true);
        expect(text.slice(13 + frames.length), what).toMatch(isEnded ? /^event: end\ndata: \{[^\n]*\}\n\n$/ : /^$/);
      }
    });
  },
  PATIENCE_MS,
);

test(
  'on the streams without one it makes no difference',
  async () => {
    for (const path of ['/v1/interactions/events', '/v1/changes']) {
      for (const cursor of NONSENSE.map((text) => text.replaceAll(' ', '%20'))) {
        const { status, text } = await hear(`${path}?cursor=${cursor}`, cursor.replaceAll(/[^ -~]/g, '?'), (heard) =>
          heard.includes('event: ready'),
        );
        expect([status, text.includes('event: reset')], `${path} ${cursor} ${text}`).toEqual([200, true]);
      }
    }
  },
  PATIENCE_MS,
);

test(
  'over a connection cut after any byte, the client yields each event after its cursor once',
  async () => {
    await fuzz('cut connections', 12, async (random) => {
      const { id, lines } = runs[0] as Run;
      const kind = pick(random, ['events', 'rasp'] as const);
      const stored = lines[kind];
      const cursor = random(stored.length + 1);
      let connections = 0;
      // Sooner or later one lives long enough.
      const proxy = await openCuttingProxy(served.url, () => ((connections += 1) > 25 ? 1e9 : 200 + random(3000)));
      served.hosts.add(new URL(proxy.url).host);
      const seen: string[] = [];
      for await (const event of createClient({ url: proxy.url, token: served.token, wait: async () => {} })[kind](id, {
        cursor,
      }))
        seen.push(JSON.stringify(event));
      expect(seen).toEqual(stored.slice(cursor).map((line) => JSON.stringify(JSON.parse(line))));
      await proxy.close();
    });
  },
  PATIENCE_MS,
);
