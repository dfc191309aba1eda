// Each requirement is linked to tests by name; unproved requirements are listed, so that none is forgotten.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

interface Requirements {
  readonly proved: Record<string, string[]>;
  readonly later: string[];
}

const { proved, later } = JSON.parse(
  readFileSync(new URL('./requirements.json', import.meta.url), 'utf8'),
) as Requirements;
// The number of requirements in each document.
const COUNTS = { '000': 18, '001': 15, '002': 19, '003': 9, '004': 16 };
const ids = Object.entries(COUNTS).flatMap(([document, count]) =>
  Array.from({ length: count }, (_, index) => `${document}-${String(index + 1).padStart(2, '0')}`),
);

test('every requirement is either proved or listed as still to come, and never both', () => {
  expect([...Object.keys(proved), ...later].toSorted()).toEqual(ids);
});

test.each(Object.entries(proved))('%s is owned by tests that exist', (_id, names) => {
  expect(names.length).toBeGreaterThan(0);
  for (const owner of names) {
    const [file = '', name = ''] = owner.split(' > ');
    const source = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
    // Written as the name of a test, plain or of a table, followed by its function.
    expect(source, owner).toMatch(new RegExp(`[\\w)]\\(\\s*(['"\`])${escape(name)}\\1,\\s+(?:async )?\\(`));
  }
});

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
