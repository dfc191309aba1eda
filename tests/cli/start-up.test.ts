// The modules that a command loads before it does anything. A schema library takes longer to load than the rest of a
// command that only reads runs, or that hands a run to a worker. Needs the build.
import { readFileSync } from 'node:fs';
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
