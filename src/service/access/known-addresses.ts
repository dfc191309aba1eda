// The paths of all routes with their methods: a known path with another method is refused with METHOD_NOT_ALLOWED, not
// with NOT_FOUND.
import type { FastifyInstance } from 'fastify';

interface Address {
  readonly pattern: RegExp;
  readonly methods: Set<string>;
}

export class KnownAddresses {
  readonly #byUrl = new Map<string, Address>();

  // Call it before the first route is added.
  constructor(app: FastifyInstance) {
    app.addHook('onRoute', ({ url, method }) => {
      const address = this.#byUrl.get(url) ?? { pattern: toPattern(url), methods: new Set() };
      for (const each of Array.isArray(method) ? method : [method]) address.methods.add(each);
      this.#byUrl.set(url, address);
    });
  }

  // Sorted by name; empty for an unknown path.
  methodsOf(path: string): readonly string[] {
    const methods = new Set<string>();
    for (const { pattern, methods: known } of this.#byUrl.values())
      if (pattern.test(path)) for (const method of known) methods.add(method);
    return [...methods].toSorted();
  }
}

function toPattern(url: string): RegExp {
  const parts = url
    .split('/')
    .map((part) => (part.startsWith(':') ? '[^/]+' : part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')));
  return new RegExp(`^${parts.join('/')}$`);
}
