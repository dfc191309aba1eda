// Registers every route of the service, and the OpenAPI document that describes them. Registration only declares
// handlers and schemas, so scripts/generate-reference.mjs can read the document without a store.
import { describeApi } from '../api/describe-api.js';
import type { RouteContext } from '../service.js';
import { aboutRoutes } from './about.js';
import { auditRoutes } from './audit.js';
import { consoleRoutes } from './console.js';
import { evidenceRoutes } from './evidence.js';
import { inboxRoutes } from './inbox.js';
import { runRoutes } from './runs.js';
import { signInRoutes } from './sign-in.js';
import { streamRoutes } from './streams.js';

const ROUTES = [
  runRoutes,
  inboxRoutes,
  streamRoutes,
  evidenceRoutes,
  aboutRoutes,
  signInRoutes,
  auditRoutes,
  consoleRoutes,
];

export async function addRoutes(context: RouteContext): Promise<void> {
  describeApi(context);
  for (const routes of ROUTES) await context.app.register(async (part) => routes({ ...context, app: part }));
}
