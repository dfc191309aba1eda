// The link that parley serve prints: it signs a browser in, and the token is out of the address again.
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { RequestError } from '../../run/request-error.js';
import { signInCookie, signOutCookie } from '../access.js';
import type { Room } from '../service.js';

export async function signInRoutes({ app: bare, tokens, cookie }: Room): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();

  app.get('/sign-in', { schema: { hide: true, querystring: z.strictObject({ token: z.string().max(500).default('') }) }, config: { role: 'anyone' } }, async ({ query: { token } }, reply) => {
    if (!tokens.find(token)) throw new RequestError('UNAUTHORIZED', 'this link is not known; parley serve prints the one that is');
    return reply.header('set-cookie', signInCookie(cookie, token)).redirect('/', 303);
  });

  app.post('/sign-out', { schema: { hide: true }, config: { role: 'viewer' } }, async (_request, reply) => reply.header('set-cookie', signOutCookie(cookie)).code(204).send());
}
