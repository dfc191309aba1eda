// The dependencies match the security page, and the audit script finds planted problems.
import { expect, test } from 'vitest';
import { auditDependencies, readLock, type Lock } from '../../scripts/audit-dependencies.mjs';

test('nothing is wrong with the packages of the lock', () => {
  expect(auditDependencies(readLock()).problems).toEqual([]);
});

test.each([
  [
    'a package without a digest',
    (lock: Lock) => delete lock.packages['node_modules/fastify']?.integrity,
    /fastify@\S+ has no SHA-512 digest/,
  ],
  [
    'an older digest',
    (lock: Lock) => Object.assign(lock.packages['node_modules/fastify'] ?? {}, { integrity: 'sha1-abc=' }),
    /no SHA-512/,
  ],
  [
    'a licence that is not allowed',
    (lock: Lock) => Object.assign(lock.packages['node_modules/pg'] ?? {}, { license: 'AGPL-3.0' }),
    /pg@\S+ has the licence AGPL-3\.0/,
  ],
  ['no licence', (lock: Lock) => delete lock.packages['node_modules/pg']?.license, /has the licence undefined/],
  [
    'a script at the install',
    (lock: Lock) => Object.assign(lock.packages['node_modules/pino'] ?? {}, { hasInstallScript: true }),
    /pino@\S+ runs a script/,
  ],
  [
    'a registry',
    (lock: Lock) =>
      Object.assign(lock.packages['node_modules/pino'] ?? {}, { resolved: 'https://registry.example/pino.tgz' }),
    /names where it comes from/,
  ],
  [
    'a second copy',
    (lock: Lock) =>
      Object.assign(lock.packages, {
        'node_modules/x/node_modules/zod': { ...lock.packages['node_modules/zod'], version: '3.0.0' },
      }),
    /zod is there 2 times/,
  ],
  [
    'a range',
    (lock: Lock) => Object.assign(lock.packages['']?.dependencies ?? {}, { pg: '^8.0.0' }),
    /pg is not pinned/,
  ],
  [
    'more packages than are known',
    (lock: Lock) =>
      Object.assign(
        lock.packages,
        Object.fromEntries(
          Array.from({ length: 10 }, (_, index) => [
            `node_modules/x${index}`,
            { ...lock.packages['node_modules/pino'] },
          ]),
        ),
      ),
    /more than \d+/,
  ],
])('%s is found', (_what, spoil, problem) => {
  const lock = readLock();
  spoil(lock);
  expect(auditDependencies(lock).problems.join('\n')).toMatch(problem);
});
