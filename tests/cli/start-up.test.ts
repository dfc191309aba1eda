// The modules that a command loads before it does anything. A schema library takes longer to load than the rest of a
// command that only reads runs, or that hands a run to a worker. Needs the build.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const dist = new URL('../../dist/', import.meta.url);

// Static imports only; import() loads a module when it is needed.
function loadedBy(entry: string): Set<string> {
  const loaded = new Set<string>();
  const load = (url: URL): void => {
    if (loaded.has(url.href)) return;
    loaded.add(url.href);
    for (const [, name = ''] of readFileSync(url, 'utf8').matchAll(/^(?:import|export)\b[^'"]*['"]([^'"]+)['"];$/gm)) {
      if (name.startsWith('.')) load(new URL(name, url));
      else loaded.add(name);
    }
  };
  load(new URL(entry, dist));
  return loaded;
}

test.each(['cli/reading/list.js', 'cli/reading/show.js', 'cli/conversation/run.js', 'cli/conversation/reply.js'])(
  '%s loads neither zod nor pino nor the orchestrator',
  (entry) => {
    const loaded = loadedBy(entry);
    expect(loaded.size).toBeGreaterThan(100);
    for (const name of ['zod', 'pino', new URL('orchestrator/orchestrator.js', dist).href])
      expect(loaded.has(name), name).toBe(false);
  },
);

test('a worker loads all three, so the search finds them', () => {
  const loaded = loadedBy('cli/conversation/worker.js');
  for (const name of ['zod', 'pino', new URL('orchestrator/orchestrator.js', dist).href])
    expect(loaded.has(name), name).toBe(true);
});

// The packages in the files that are loaded with this one of dist/program. A name may end in a hash.
function packedWith(name: string): Set<string> {
  const entry = readdirSync(new URL('program/', dist)).find((file) =>
    new RegExp(`^${name}(?:-\\w+)?\\.js$`).test(file),
  );
  const files = [...loadedBy(`program/${entry}`)].filter((url) => url.startsWith('file:'));
  const texts = files.map((url) => readFileSync(new URL(url), 'utf8'));
  return new Set(
    texts.flatMap((text) =>
      [...text.matchAll(/^ *\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)/gm)].map(([, name = '']) => name),
    ),
  );
}

test('the packed program prints its help with no package but the one for commands', () => {
  expect([...packedWith('main')]).toEqual(['commander']);
});

test.each(['reading', 'conversation'])('the packed commands of %s load neither zod nor pino nor fastify', (group) => {
  const packages = packedWith(group);
  expect(packages).toContain('ajv');
  for (const name of ['zod', 'pino', 'fastify']) expect(packages.has(name), name).toBe(false);
});

test('a packed server loads all three, so the search finds them', () => {
  const packages = packedWith('serve');
  for (const name of ['zod', 'pino', 'fastify']) expect(packages.has(name), name).toBe(true);
});

test('every file that the packed program loads by its address is there', () => {
  const folder = new URL('program/', dist);
  const texts = readdirSync(folder)
    .filter((file) => file.endsWith('js'))
    .map((file) => readFileSync(new URL(file, folder), 'utf8'));
  const files = texts.join('\n').matchAll(/new URL\("([^"]+)", import\.meta\.url\)/g);
  const addresses = Array.from(files, ([, address = '']) => address);
  expect(addresses).toEqual(expect.arrayContaining(['./check-thread.mjs', '../../package.json']));
  for (const address of addresses) expect(existsSync(new URL(address, folder)), address).toBe(true);
});
