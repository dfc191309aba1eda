// A journal with damaged, missing or truncated segments: every reader names the lost events, and shows all others.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { doctorCommand } from '../../src/cli/administration/doctor.js';
import { showCommand, watchCommand } from '../../src/cli/reading/show.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { capture } from '../support/capture.js';
import { createRoot, openBench } from '../support/orchestrated.js';
import { serve } from '../support/served.js';

type Protocol = 'rasp' | 'fcmp';
type Range = readonly [from: number, to: number];

interface Damaged {
  readonly root: string;
  readonly data: string;
  readonly id: string;
  readonly head: number;
  // The events of the second segment, and the first event of the last segment.
  readonly second: Range;
  readonly lastFrom: number;
}

// A run with a question and an answer, with one of its journals altered by `statement`: $P is the protocol, $FROM the
// first event of the second segment, $LAST that of the last one.
async function damage(protocol: Protocol, statement: string): Promise<Damaged> {
  const root = createRoot();
  const bench = await openBench(root);
  const { run_id: id } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[ask Which?]][[done 1]]',
    execution_mode: 'interactive',
    permission: 'full',
  });
  await bench.orchestrator.waitUntilIdle(id);
  const [pending] = await bench.data.store.listPending({ limit: 1 });
  await bench.orchestrator.reply(id, { interaction_id: pending?.interaction_id ?? '', response: 'this' });
  const { heads } = await bench.orchestrator.waitUntilIdle(id);
  const pieces = await bench.data.store.listSegments(id, protocol);
  await bench.close();
  const data = join(root, 'data');
  const { seq_from: from = 0, seq_to: to = 0 } = pieces[1] ?? {};
  const { seq_from: lastFrom = 0 } = pieces.at(-1) ?? {};
  const db = await openDatabase(join(data, 'parley.db'));
  db.exec(
    statement.replaceAll('$P', `'${protocol}'`).replaceAll('$FROM', String(from)).replaceAll('$LAST', String(lastFrom)),
  );
  db.close();
  return { root, data, id, head: protocol === 'rasp' ? heads.rasp_seq : heads.fcmp_seq, second: [from, to], lastFrom };
}

const SECOND = 'WHERE protocol = $P AND seq_from = $FROM';
const DAMAGES: readonly (readonly [what: string, statement: string, lost: (damaged: Damaged) => Range])[] = [
  ['cut off', `UPDATE segments SET packed = 0, body = substr(body, 1, 20) ${SECOND}`, ({ second }) => second],
  ['a zero byte', `UPDATE segments SET packed = 0, body = x'00' ${SECOND}`, ({ second }) => second],
  ['empty', `UPDATE segments SET packed = 0, body = x'' ${SECOND}`, ({ second }) => second],
  ['missing', `DELETE FROM segments ${SECOND}`, ({ second }) => second],
  [
    'the last one, missing',
    'DELETE FROM segments WHERE protocol = $P AND seq_from = $LAST',
    ({ lastFrom, head }) => [lastFrom, head],
  ],
  ['each of them, empty', `UPDATE segments SET packed = 0, body = x'' WHERE protocol = $P`, ({ head }) => [1, head]],
  ['each of them, missing', 'DELETE FROM segments WHERE protocol = $P', ({ head }) => [1, head]],
];
const EACH = (['fcmp', 'rasp'] as const).flatMap((protocol) =>
  DAMAGES.map(([what, statement, lost]) => [protocol, what, statement, lost] as const),
);

// The events that reports name, without overlaps: segments are reported one by one.
function named(text: string, pattern: RegExp): number[] {
  const seqs = [...text.matchAll(pattern)].flatMap(([, from, to]) => range([Number(from), Number(to)]));
  expect(new Set(seqs).size, text).toBe(seqs.length);
  return seqs;
}

const range = ([from, to]: Range): number[] => Array.from({ length: to - from + 1 }, (_, index) => from + index);

test.each(EACH)(
  '%s piece, %s: show and watch name the lost events and show all others',
  async (protocol, _what, statement, lost) => {
    const damaged = await damage(protocol, statement);
    const { data, id, head } = damaged;
    const missing = range(lost(damaged));
    const damagePattern = new RegExp(`^parley: damaged: ${protocol} events (\\d+) to (\\d+): `, 'gm');
    for (const follow of [true, false]) {
      const watched = await capture((io) =>
        watchCommand(id, { data, cursor: 0, follow, rasp: protocol === 'rasp', json: true }, io),
      );
      expect([watched.code, named(watched.stderr, damagePattern)]).toEqual([0, missing]);
      const seqs = watched.stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { seq: number }).seq);
      expect(seqs).toEqual(range([1, head]).filter((seq) => !missing.includes(seq)));
    }
    if (protocol === 'rasp') return;
    const shown = await capture((io) => showCommand(id, { data }, io));
    expect([shown.code, named(shown.stderr, damagePattern)]).toEqual([0, missing]);
    const { run } = JSON.parse((await capture((io) => showCommand(id, { data, json: true }, io))).stdout) as {
      run: { damage?: string[] };
    };
    expect(named((run.damage ?? []).join('\n'), /^fcmp events (\d+) to (\d+): /gm)).toEqual(missing);
  },
);

test.each(EACH)('%s piece, %s: doctor --full finds it', async (protocol, _what, statement, lost) => {
  const damaged = await damage(protocol, statement);
  const [from] = lost(damaged);
  const { code, stdout } = await capture((io) => doctorCommand({ data: damaged.data, full: true }, io));
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(`✗ damage .*${damaged.id} \\(${protocol} events ${from} to `),
  ]);
});

test.each(EACH)(
  '%s piece, %s: history and stream of a server name it, and the stream ends',
  async (protocol, _what, statement, lost) => {
    const damaged = await damage(protocol, statement);
    const missing = range(lost(damaged));
    const served = await serve({ root: damaged.root });
    const path = `/v1/runs/${damaged.id}/${protocol === 'rasp' ? 'rasp' : 'events'}`;
    const history = (await (await served.fetch(`${path}/history`)).json()) as {
      events: { seq: number }[];
      damaged?: { from_seq: number; to_seq: number }[];
      next_seq: null;
    };
    expect(history.damaged?.flatMap(({ from_seq: from, to_seq: to }) => range([from, to]))).toEqual(missing);
    expect([history.events.map(({ seq }) => seq), history.next_seq]).toEqual([
      range([1, damaged.head]).filter((seq) => !missing.includes(seq)),
      null,
    ]);
    const stream = await (await served.fetch(path)).text();
    expect(named(stream, /^event: damaged\ndata: \{"from_seq":(\d+),"to_seq":(\d+),/gm)).toEqual(missing);
    expect(stream.match(/^id: /gm) ?? []).toHaveLength(damaged.head - missing.length);
    expect(stream).toContain('event: end');
    served.bench.failures.length = 0;
    await served.close();
  },
);

test('an event that is not JSON, or another one, is named and left out', async () => {
  for (const [from, to] of [
    ['"seq":', '"seq":4'],
    ['{', '['],
  ] as const) {
    const damaged = await damage(
      'fcmp',
      `UPDATE segments
       SET body = CAST(replace(CAST(body AS TEXT), '${from}', '${to}') AS BLOB)
       WHERE protocol = $P AND seq_from = $FROM AND packed = 0`,
    );
    const { data, id, root } = damaged;
    const watched = await capture((io) => watchCommand(id, { data, cursor: 0, follow: false, json: true }, io));
    expect(watched.stderr).toMatch(/^parley: damaged: fcmp events \d+ to \d+: /);
    for (const line of watched.stdout.trimEnd().split('\n')) expect(() => JSON.parse(line) as unknown).not.toThrow();
    const served = await serve({ root });
    const [first, last] = damaged.second;
    expect(await (await served.fetch(`/v1/runs/${id}/events/history`)).json()).toMatchObject({
      damaged: [{ from_seq: first, to_seq: last }],
    });
    served.bench.failures.length = 0;
    await served.close();
  }
});

test.each(['cut off', 'the last one, missing'])(
  'a start does not overwrite the file of a journal that is damaged: %s',
  async (what) => {
    const [, statement = ''] = DAMAGES.find(([name]) => name === what) ?? [];
    const { root, data, id } = await damage('rasp', statement);
    const file = join(runFolder(data, id).path, 'rasp.jsonl');
    const whole = readFileSync(file);
    rmSync(join(data, 'exports.clean'));
    const bench = await openBench(root);
    expect(bench.failures.splice(0)).toEqual([expect.objectContaining({ name: 'DamagedDataError' })]);
    await bench.close();
    expect(readFileSync(file).equals(whole)).toBe(true);
  },
);
