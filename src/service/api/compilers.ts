// Validates requests and serializes responses with their zod schemas. Passed to Fastify when it is created, not later:
// otherwise it first loads and prepares its own compilers, which are never used.
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';

// Fastify's types accept only its own compilers.
export const BY_ZOD = {
  compilersFactory: {
    buildValidator: () => validatorCompiler as never,
    buildSerializer: () => serializerCompiler as never,
  },
};
