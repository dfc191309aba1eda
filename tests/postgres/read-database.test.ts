// A reader of the whole database, or of a backup, cannot derive anything that a server accepts.
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { parley } from '../support/command.js';
import { becomes, withHosts, type Hosts } from '../support/hosts.js';

// Each text of each table, as it is stored, and each word in it.
async function dumpTexts({
  database,
}: Hosts): Promise<{ readonly whole: string; readonly texts: ReadonlySet<string> }> {
  const columns = await database.query<{ table: string; column: string }>(
    `SELECT table_name AS table, column_name AS column FROM information_schema.columns
     WHERE table_schema = 'parley' ORDER BY table_name, ordinal_position`,
  );
  const texts = new Set<string>();
  let whole = '';
  for (const { table, column } of columns) {
    const rows = await database.query<{ value: string | null; decoded: string | null }>(
      `SELECT "${column}"::text AS value,
         convert_from(
           CASE WHEN pg_typeof("${column}") = 'bytea'::regtype THEN "${column}"::text::bytea END, 'UTF8'
         ) AS decoded
       FROM parley."${table}"`,
    );
    for (const { value, decoded } of rows)
      for (const text of [value, decoded]) {
        if (text === null) continue;
        whole += `${text}\n`;
        texts.add(text);
        for (const word of text.split(/[^\w.~+/=-]+/)) if (word.length >= 8) texts.add(word);
      }
  }
  return { whole, texts };
}

// How tokens were derived from a secret in the database before version 6.
const derive = (secret: string, purpose: string) =>
  `prl_${createHmac('sha256', secret).update(purpose).digest('base64url')}`;

const post = (url: string, body: object) =>
  fetch(`${url}/v1/sign-in`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

// Those of the requests that were not refused. So many failures from one address are refused as too many (429) instead
// of waiting; a valid token or session never is.
async function listAccepted(requests: readonly (readonly [string, () => Promise<Response>])[]): Promise<string[]> {
  const accepted: string[] = [];
  const queue = requests.values();
  const work = async (): Promise<void> => {
    for (const [name, send] of queue) {
      const response = await send();
      await response.arrayBuffer();
      if (![400, 401, 429].includes(response.status)) accepted.push(`${response.status} ${name}`);
    }
  };
  await Promise.all(Array.from({ length: 40 }, work));
  return accepted;
}

test('a reader of the database can derive no token, session or code', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  const env = { PARLEY_DATABASE_URL: hosts.database.url };
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
  await becomes(a.client, id).toBe('succeeded');
  // Host b reads the files of a with its host token.
  expect(
    (await fetch(`${b.url}/v1/runs/${id}/files`, { headers: { authorization: `Bearer ${b.token}` } })).status,
  ).toBe(200);
  const named = (await parley(hosts.site, ['token', 'add', 'anna', '--role', 'operator'], { env })).stdout.trim();
  const [cookie = ''] = ((await post(a.url, { token: a.token })).headers.get('set-cookie') ?? '').split(';');
  const [name = '', session = ''] = cookie.split('=');
  const [, code = ''] = /#code=(\S+)/.exec((await parley(hosts.site, ['link'], { env })).stdout) ?? [];

  const { whole, texts } = await dumpTexts(hosts);
  // The dump has all data.
  for (const known of [id, 'anna', 'database_id', 'site_', 'lifecycle']) expect(whole).toContain(known);
  for (const secret of [a.token, b.token, named, session, code]) {
    expect(secret.length).toBeGreaterThan(20);
    expect(whole.includes(secret)).toBe(false);
  }
  // For host tokens and private keys only their form is known here. An ed25519 key in DER starts like this.
  expect(whole).not.toMatch(/pr[lsc]_[\w-]{20}|PRIVATE KEY|MC4CAQAwBQYDK2Vw/);
  expect(
    (await hosts.database.query<{ key: string }>('SELECT key FROM parley.meta ORDER BY key')).map(({ key }) => key),
  ).toEqual(['database_id', 'version']);

  const plain = [...texts].filter((text) => /^[\w.~+/=-]{8,500}$/.test(text));
  const tokens = [
    ...plain,
    ...[...texts].flatMap((text) => ['operator', 'hosts', 'proof', 'cookie'].map((purpose) => derive(text, purpose))),
  ];
  const me = (headers: Record<string, string>) => fetch(`${b.url}/v1/me`, { headers });
  expect(plain.length).toBeGreaterThan(100);
  const accepted = await listAccepted([
    ...tokens.map((token) => [token, () => me({ authorization: `Bearer ${token}` })] as const),
    ...plain.map((text) => [`session ${text}`, () => me({ cookie: `${name}=${text}` })] as const),
    ...plain.map((text) => [`code ${text}`, () => post(b.url, { code: text })] as const),
    // Valid ones are accepted after all these failures.
    ['operator', () => me({ authorization: `Bearer ${a.token}` })],
    ['named', () => me({ authorization: `Bearer ${named}` })],
    ['browser', () => me({ cookie })],
  ]);
  expect(accepted.toSorted()).toEqual(['200 browser', '200 named', '200 operator']);
  expect((await post(b.url, { code })).status).toBe(200);
});
