// The addresses of all routes with their methods: a known address with another method is refused as such, not as
// unknown.
import type { FastifyInstance } from 'fastify';

interface Address {
  readonly pattern: RegExp;
  readonly methods: Set<string>;
}

export class KnownAddresses {
  readonly #byUrl = new Map<string, Address>();

  // Before the first route is added.
  constructor(app: FastifyInstance) {
    app.addHook('onRoute', ({ url, method }) => {
      const address = this.#byUrl.get(url) ?? { pattern: toPattern(url), methods: new Set() };
      for (const each of Array.isArray(method) ? method : [method]) address.methods.add(each);
      this.#byUrl.set(url, address);
    });
  }

  // In the order of their names; none for an unknown address.
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
