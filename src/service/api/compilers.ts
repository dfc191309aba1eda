// Requests and answers are checked by their zod schemas. Given to Fastify as it is made and not set later: else it
// loads and prepares compilers of its own first, which nobody asks.
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';

// Fastify's types know only makers of its own.
export const BY_ZOD = {
  compilersFactory: {
    buildValidator: () => validatorCompiler as never,
    buildSerializer: () => serializerCompiler as never,
  },
};
