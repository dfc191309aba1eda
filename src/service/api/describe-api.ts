// The API describes itself: an OpenAPI 3.1 document made from the routes, and a page of it for people. It is made when
// it is first asked for: what makes it takes longer to load than all the routes.
import Fastify, { type RouteOptions } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { STICKY_ERRORS } from '../../contract/error-codes.js';
import { apiPage } from './api-page.js';
import { BY_ZOD } from './compilers.js';
import type { Room } from '../service.js';

export function describeApi({ app, version, sticky = false }: Room): void {
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    const { schema, config } = route;
    // What a caller must be stands with each route.
    if (schema)
      schema.description =
        config?.role === 'anyone' ? 'Needs no token.' : `Needs the role ${config?.role ?? 'viewer'}.`;
    if (route.method !== 'HEAD') routes.push(route);
  });
  let made: ReturnType<typeof makeDocument> | undefined;
  const document = (): ReturnType<typeof makeDocument> =>
    (made ??= makeDocument(routes, version, sticky).catch((error: unknown) => {
      // The next who asks tries again.
      made = undefined;
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

// The routes are written down as they are given to an app: this one never listens.
async function makeDocument(routes: readonly RouteOptions[], version: string, sticky: boolean) {
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
      tags: [
        { name: 'runs', description: 'Agents at work' },
        { name: 'inbox', description: 'Questions that wait for a person' },
        { name: 'events', description: 'The journals of a run' },
        { name: 'evidence', description: 'What proves what happened' },
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
      return (sticky ? withStickyErrors(described) : described) as never;
    },
  });
  for (const { method, url, schema } of routes)
    app.route({ method, url, ...(schema ? { schema } : {}), handler: async () => {} });
  await app.ready();
  return app.swagger();
}

type Described = { readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> } };

// Each named schema is given in a form for what comes in, too; ours are only sent.
function withoutInputs<T extends Described>(document: T): T {
  const schemas = Object.entries(document.components?.schemas ?? {});
  const sent = new Set(schemas.map(([name]) => name).filter((name) => !name.endsWith('Input')));
  return {
    ...document,
    components: { ...document.components, schemas: Object.fromEntries(schemas.filter(([name]) => sent.has(name))) },
  };
}

// The codes of sessions.sticky, where the setting is on.
function withStickyErrors<T extends Described>(document: T): T {
  const error = document.components?.schemas?.['RunError'] as {
    readonly properties: { readonly code: { readonly enum: readonly string[] } };
  };
  const code = { ...error.properties.code, enum: [...error.properties.code.enum, ...Object.keys(STICKY_ERRORS)] };
  return {
    ...document,
    components: {
      ...document.components,
      schemas: { ...document.components?.schemas, RunError: { ...error, properties: { ...error.properties, code } } },
    },
  };
}
