// The guide to several hosts: its commands run on a database of their own and print what the page shows.
import { expect, onTestFinished, test } from 'vitest';
import { canRun, readBlocks, runPage } from '../docs/page.js';
import { withDatabase } from '../support/postgres.js';

test('docs/guides/several-hosts.md: its commands run and print what the page shows', async () => {
  const database = await withDatabase({ empty: true });
  onTestFinished(() => database.drop());
  const blocks = readBlocks('docs/guides/several-hosts.md').filter(canRun);
  expect((await runPage(blocks, { env: { PARLEY_DATABASE_URL: database.url } })).join('\n\n')).toBe('');
}, 300_000);
