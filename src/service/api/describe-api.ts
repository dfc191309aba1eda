// The API describes itself: an OpenAPI 3.1 document built from the routes, and the same as a page for people. It is
// built on the first request, because the library that builds it takes longer to load than all routes.
import Fastify, { type RouteOptions } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { apiPage } from './api-page.js';
import { BY_ZOD } from './compilers.js';
import type { RouteContext } from '../service.js';
import { addExamples } from './add-examples.js';
import { addWebhooks } from './webhooks.js';
import { contractFor, type RunContract } from '../../run/waiting/run-contract.js';

export function describeApi({ app, version, baseUrl, contract = contractFor() }: RouteContext): void {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    const { schema, config } = route;
    // The description of every route names the required role.
    const role = config?.role === 'anyone' ? 'Needs no token.' : `Needs the role ${config?.role ?? 'viewer'}.`;
    if (schema) schema.description = schema.description ? `${schema.description} ${role}` : role;
    if (route.method !== 'HEAD') routes.push(route);
  });
  let built: ReturnType<typeof buildDocument> | undefined;
  // The address is known only after the server listens.
  const document = (): ReturnType<typeof buildDocument> =>
    (built ??= buildDocument(routes, { version, contract, url: baseUrl?.() ?? DEFAULT_URL }).catch((error: unknown) => {
      // The next request tries again.
      built = undefined;
      throw error;
    }));
  app.get('/openapi.json', { schema: { hide: true } }, async () => document());
  app.get('/docs', { schema: { hide: true } }, async (_request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
      .send(apiPage(await document())),
  );
}

// Where `parley serve` listens by default.
const DEFAULT_URL = 'http://127.0.0.1:7717';

// The library describes the routes that are registered in an app, so they are registered again in an app that never
// listens.
async function buildDocument(
  routes: readonly RouteOptions[],
  { version, contract, url }: { readonly version: string; readonly contract: RunContract; readonly url: string },
) {
  const { default: swagger } = await import('@fastify/swagger');
  const app = Fastify({ schemaController: BY_ZOD, exposeHeadRoutes: false });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Parley',
        version,
        description:
          'Coding agents as durable conversations: no question is lost, no answer is applied twice, no byte ' +
          'disappears.',
      },
      servers: [{ url, description: 'This server' }],
      tags: [
        { name: 'runs', description: 'Agents at work' },
        { name: 'inbox', description: 'Questions that wait for a person' },
        { name: 'events', description: 'The journals of a run' },
        { name: 'evidence', description: 'The recorded output, files and checks of a run' },
        { name: 'access', description: 'Signing in, sessions and the administrative journal' },
        { name: 'service', description: 'The server itself' },
      ],
      components: {
        securitySchemes: {
          token: {
            type: 'http',
            scheme: 'bearer',
            description: 'The token of parley serve, or one of parley token add.',
          },
        },
      },
      security: [{ token: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: (document) => {
      const described = withoutInputs(jsonSchemaTransformObject(document) as Described);
      return addWebhooks(addExamples(withCodes(described, contract), contract)) as never;
    },
  });
  for (const { method, url, schema } of routes)
    app.route({ method, url, ...(schema ? { schema } : {}), handler: async () => {} });
  await app.ready();
  return app.swagger();
}

type Described = {
  readonly paths?: object;
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> };
};

// The library adds a second form of each named schema, for requests. Ours are used in responses only.
function withoutInputs<T extends Described>(document: T): T {
  const schemas = Object.entries(document.components?.schemas ?? {});
  const sent = new Set(schemas.map(([name]) => name).filter((name) => !name.endsWith('Input')));
  return {
    ...document,
    components: { ...document.components, schemas: Object.fromEntries(schemas.filter(([name]) => sent.has(name))) },
  };
}

// Lists the error codes of runs, including those of an extension of the contract, with their meanings.
function withCodes<T extends Described>(document: T, { runErrors }: RunContract): T {
  const error = document.components?.schemas?.['RunError'] as {
    readonly properties: { readonly code: object };
  };
  const code = {
    ...error.properties.code,
    enum: runErrors.map((each) => each.code),
    'x-enumDescriptions': Object.fromEntries(
      runErrors.map(({ code: name, meaning, retryable }) => [name, `${meaning}${retryable ? ' Can be retried.' : ''}`]),
    ),
  };
  return {
    ...document,
    components: {
      ...document.components,
      schemas: { ...document.components?.schemas, RunError: { ...error, properties: { ...error.properties, code } } },
    },
  };
}
