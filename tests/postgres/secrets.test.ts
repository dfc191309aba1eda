// A server with a database: neither its password nor tokens are in any row, file, log or engine process.
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listMarked } from '../../src/process/process-table.js';
import { parley } from '../support/command.js';
import { becomes, TOKEN, withHosts } from '../support/hosts.js';

const PASSWORD = 'password-of-this-test-3f81c2d0';
const ROLE = 'parley_secrets_test';

test('the password of the database and the tokens are nowhere but where they were given', async () => {
  const hosts = await withHosts();
  const { database, site } = hosts;
  await database.query(`DROP ROLE IF EXISTS ${ROLE}`);
  await database.query(`CREATE ROLE ${ROLE} LOGIN SUPERUSER PASSWORD '${PASSWORD}'`);
  try {
    const address = new URL(database.url);
    [address.username, address.password] = [ROLE, PASSWORD];
    const server = await hosts.start('a', { url: address.href });
    const env = { PARLEY_DATABASE_URL: address.href, PARLEY_TOKEN: TOKEN, HOSTNAME: 'elsewhere' };
    const named = (await parley(site, ['token', 'add', 'anna', '--role', 'viewer'], { env })).stdout.trim();
    expect(named).toMatch(/^prl_/);
    const { run_id: id } = await server.client.create({
      engine: 'codex',
      prompt: '[[ask Which?|a|b]] [[sleep 300]] [[done 1]]',
      execution_mode: 'interactive',
      permission: 'full',
    });
    await becomes(server.client, id).toBe('waiting_user');
    await server.client.reply(id, {
      interaction_id: (await server.client.interaction(id)).interaction_id,
      response: 'a',
    });
    let environment = '';
    await expect
      .poll(
        () => {
          for (const { pid, mark } of listMarked())
            if (mark?.startsWith(`${id}/`))
              environment += readOr(`/proc/${pid}/environ`) + readOr(`/proc/${pid}/cmdline`);
          return environment.length;
        },
        { timeout: 30_000, interval: 20 },
      )
      .toBeGreaterThan(0);
    await becomes(server.client, id).toBe('succeeded');
    const printed = await Promise.all([['ls'], ['show', id], ['doctor']].map((args) => parley(site, args, { env })));
    const metrics = await (
      await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
    ).text();
    server.child.kill('SIGTERM');
    const { stderr } = await server.ended;
    let written = '';
    for (const path of readdirSync(site.root, { recursive: true, encoding: 'utf8' }))
      if (lstatSync(join(site.root, path)).isFile()) written += readFileSync(join(site.root, path), 'latin1');
    for (const { table_schema: schema, table_name: name } of await database.query<{
      table_schema: string;
      table_name: string;
    }>(`SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = 'parley'`)) {
      for (const { row } of await database.query<{ row: string }>(`SELECT t::text AS row FROM "${schema}"."${name}" t`))
        written += row;
    }
    // The scan finds existing values.
    expect(written).toContain('Which?');
    expect(written).toContain(id);
    for (const secret of [PASSWORD, TOKEN, named])
      for (const [where, text] of Object.entries({
        written,
        environment,
        metrics,
        stderr,
        printed: printed.map((each) => each.stdout + each.stderr).join(''),
      }))
        expect(text.includes(secret), `${secret} in ${where}`).toBe(false);
  } finally {
    await database.terminate(`usename = '${ROLE}'`);
    await database.query(`DROP OWNED BY ${ROLE}`);
    await database.query(`DROP ROLE ${ROLE}`);
  }
});

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
