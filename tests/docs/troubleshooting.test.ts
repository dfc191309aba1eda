// The troubleshooting guide has advice for every code that a caller can get.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './page.js';

test('docs/guides/troubleshooting.md has one row for each code of a failed run or a refused request', () => {
  const page = readFileSync(join(ROOT, 'docs/guides/troubleshooting.md'), 'utf8');
  const contract = JSON.parse(readFileSync(join(ROOT, 'contract/errors.json'), 'utf8')) as Record<
    string,
    { kind?: string }
  >;
  const rows = [...page.matchAll(/^\| ((?:`[A-Z_]+`(?:, )?)+) \|/gm)].flatMap(([, codes = '']) =>
    [...codes.matchAll(/[A-Z_]+/g)].map(([code]) => code),
  );
  const codes = Object.entries(contract)
    .filter(([, { kind }]) => kind === 'run' || kind === 'request')
    .map(([code]) => code);
  expect(rows.toSorted()).toEqual(codes.toSorted());
});
