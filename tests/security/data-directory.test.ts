// A data directory after its whole life: other users can read and change nothing, whatever the umask, and each secret
// is only where it must be.
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Site } from '../support/command.js';
import { playFullLife, SECRETS, type Life } from '../support/full-life.js';

// Folders of the engine: it chooses the modes of the files in them, below a folder that is private.
const OF_THE_ENGINE = /^runs\/[^/]+\/(?:workspace|home)\//;

function everything(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted();
}

// The permissions of group and others, by path; links are as open as their targets.
function open(site: Site): string[] {
  const openEntries = ['', ...everything(site.data)].flatMap((path) => {
    const stat = lstatSync(join(site.data, path), { throwIfNoEntry: false });
    const isSpecial = stat !== undefined && !stat.isFile() && !stat.isDirectory() && !stat.isSymbolicLink();
    return stat && !stat.isSymbolicLink() && !OF_THE_ENGINE.test(path) && ((stat.mode & 0o077) !== 0 || isSpecial)
      ? [`${path || '.'} ${(stat.mode & 0o777).toString(8)}`]
      : [];
  });
  return openEntries;
}

describe.each([0o000, 0o022])('with the umask %i', (umask) => {
  let life: Life;
  let openWhileServing: string[] = ['not looked'];
  beforeAll(async () => {
    const before = process.umask(umask);
    try {
      life = await playFullLife((site) => {
        openWhileServing = open(site);
        expect(readdirSync(site.data)).toEqual(
          expect.arrayContaining([
            'parley.db-wal',
            'parley.db-shm',
            'lock.db',
            'server.json',
            'writer.json',
            'token',
            'tokens.json',
          ]),
        );
      });
    } finally {
      process.umask(before);
    }
  }, 120_000);

  test('other users can read or change nothing, and there is no socket or pipe, during and after serving', () => {
    expect(openWhileServing).toEqual([]);
    expect(open(life.site)).toEqual([]);
    // Not by accident: there is something of each kind.
    const paths = everything(life.site.data);
    for (const part of [
      '/attempts/1/stdout.log',
      '/rasp.jsonl',
      '/result.json',
      '/agents/main/runtime/',
      '/home/.codex/config.toml',
      '/workspace/made.txt',
    ])
      expect(
        paths.some((path) => path.includes(part)),
        part,
      ).toBe(true);
  });

  test('files given to an engine stay usable for it, and its folders are closed to others', () => {
    const paths = everything(life.site.data);
    for (const path of paths.filter((each) => /^runs\/[^/]+\/(?:workspace|home)$/.test(each)))
      expect(lstatSync(join(life.site.data, path)).mode & 0o777, path).toBe(0o700);
    for (const path of paths.filter((each) => each.endsWith('/made.txt')))
      expect(readFileSync(join(life.site.data, path)).length, path).toBeGreaterThan(0);
    expect(
      paths
        .filter((each) => each.endsWith('/.codex/AGENTS.md'))
        .map((path) => readFileSync(join(life.site.data, path), 'utf8')),
    ).toContain('Be kind.\n');
  });

  test('nothing is left where temporary files go', () => {
    expect(everything(life.temporary)).toEqual([]);
  });

  // The only allowed places of each secret.
  test('each secret is only where it must be: in files, output, responses and processes', () => {
    const { tokens, site } = life;
    const places = new Map<string, string>();
    // A link leads to files of the user.
    for (const path of everything(site.root))
      if (lstatSync(join(site.root, path)).isFile()) places.set(path, readFileSync(join(site.root, path), 'latin1'));
    for (const [name, text] of Object.entries(life.printed)) places.set(`printed by ${name}`, text);
    for (const [name, text] of Object.entries(life.answers)) places.set(`answer to ${name}`, text);
    for (const [engine, processes] of Object.entries(life.engines))
      for (const what of ['argv', 'environment'] as const)
        places.set(`${what} of ${engine}`, processes.map((each) => each[what]).join('\n'));
    places.set('argv of the server', life.server.argv).set('environment of the server', life.server.environment);
    const filesWith = (secret: string): string[] =>
      [...places]
        .filter(([, text]) => text.includes(secret) || text.includes(Buffer.from(secret).toString('base64')))
        .map(([name]) => name)
        .toSorted();
    const server = 'environment of the server';
    expect(Object.keys(life.engines)).toEqual(['codex', 'gemini', 'codex-app-server', 'rehearsal']);
    expect(filesWith(tokens.operator)).toEqual([join(relative(site.root, site.data), 'token')]);
    expect(filesWith(tokens.viewer)).toEqual(['printed by token stdout']);
    expect(tokens.cookie.length).toBeGreaterThan(20);
    expect(filesWith(tokens.cookie)).toEqual([]);
    expect(filesWith(SECRETS.hookSecretInEnvironment)).toEqual([server]);
    expect(filesWith(SECRETS.hookSecretInFile)).toEqual([relative(site.root, life.hookSecretFile)]);
    expect(filesWith(SECRETS.hookAddress)).toEqual([join(relative(site.root, site.data), 'config.json')]);
    expect(filesWith(SECRETS.codexKey)).toEqual(
      ['environment of codex', 'environment of codex-app-server', server].toSorted(),
    );
    expect(filesWith(SECRETS.geminiKey)).toEqual(['environment of gemini', server].toSorted());
    expect(filesWith(SECRETS.otherKey)).toEqual([server]);
    expect(filesWith(SECRETS.codexLogin)).toEqual(['home/.codex/auth.json']);
    expect(filesWith(SECRETS.strayToken)).toEqual([]);
    expect(filesWith(SECRETS.basicPassword)).toEqual([]);
    // The scan finds existing values.
    expect(filesWith('Which?').length).toBeGreaterThan(4);
    expect(existsSync(join(site.data, 'parley.db'))).toBe(true);
  });
});
