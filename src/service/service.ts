// The durable runs of one data directory over HTTP: an app with all its routes, ready to listen. It owns nothing but its
// connections; the orchestrator behind it goes on without it.
import Fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { EngineReport } from '../engines/engine-report.js';
import type { Clock } from '../kernel/clock.js';
import type { Orchestrator } from '../orchestrator/orchestrator.js';
import type { Timers } from '../process/timers.js';
import type { Store } from '../store/store.js';
import { cookieName, guardAccess } from './access.js';
import { BY_ZOD } from './compilers.js';
import { describeApi } from './describe-api.js';
import { refuseInOneForm } from './error-envelope.js';
import type { OtherHosts } from './forward-files.js';
import { InboxFeed } from './inbox-feed.js';
import { JournalPages } from './journal-pages.js';
import { limitConnections } from './limit-connections.js';
import { createMetrics, type Metrics } from './metrics.js';
import { refuseAddress, refuseEarly, refuseOnSocket } from './refuse-early.js';
import { RunFeed } from './run-feed.js';
import { aboutRoutes } from './routes/about.js';
import { consoleRoutes } from './routes/console.js';
import { evidenceRoutes } from './routes/evidence.js';
import { inboxRoutes } from './routes/inbox.js';
import { runRoutes } from './routes/runs.js';
import { signInRoutes } from './routes/sign-in.js';
import { streamRoutes } from './routes/streams.js';
import { Streams } from './streams.js';
import type { Caller, TokenBook } from './tokens.js';

export interface ServiceDeps {
  readonly store: Store;
  readonly orchestrator: Orchestrator;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly dataDir: string;
  // Where the built console is; null: there is none.
  readonly consoleDir: string | null;
  readonly version: string;
  readonly tokens: TokenBook;
  readonly log: FastifyBaseLogger;
  readonly engines: () => Promise<readonly EngineReport[]>;
  // Those that have files of runs which this one has not; null: there are none.
  readonly otherHosts?: OtherHosts | null;
  // Itself among them; null: it is alone.
  readonly thisHost?: ThisHost | null;
  // The edges of sessions.sticky are in force.
  readonly sticky?: boolean;
  readonly limits: ServiceLimits;
  // Where runs may work that name a folder; null: anywhere.
  readonly workspaceRoots: (caller: Caller) => readonly string[] | null;
  // Names with their ports, as they stand in a Host header; known when it listens.
  readonly hosts: () => ReadonlySet<string>;
}

export interface ThisHost {
  readonly hostId: string;
  // It has a lease.
  mayPlay(): boolean;
  // The same on all hosts of its database, and known to nobody else.
  deriveToken(what: 'proof' | 'cookie'): string;
}

export interface ServiceLimits {
  readonly bodyBytes: number;
  readonly streams: number;
  // A request that has not arrived by then is refused.
  readonly requestMs: number;
}

export const DEFAULT_LIMITS: ServiceLimits = { bodyBytes: 16 * 1024 * 1024, streams: 4000, requestMs: 30_000 };

// What the routes share.
export interface Room extends ServiceDeps {
  readonly app: FastifyInstance;
  // The name of the one that a browser is signed in by.
  readonly cookie: string;
  readonly streams: Streams;
  readonly pages: JournalPages;
  readonly inbox: InboxFeed;
  readonly runFeed: RunFeed;
  readonly metrics: Metrics;
}

export interface Service {
  readonly app: FastifyInstance;
  // From here on nothing is changed through it; what is read can still be read.
  stopTaking(): void;
  // Lets go of everybody.
  close(): Promise<void>;
}

export async function createService(deps: ServiceDeps): Promise<Service> {
  const { limits } = deps;
  const app = Fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestMs,
    // Who names no host is refused by us, in our form.
    http: { requireHostHeader: false, headersTimeout: limits.requestMs, connectionsCheckingInterval: Math.min(1000, limits.requestMs) },
    forceCloseConnections: true,
    return503OnClosing: false,
    clientErrorHandler: refuseOnSocket,
    frameworkErrors: refuseAddress,
    routerOptions: { maxParamLength: 500 },
    schemaController: BY_ZOD,
  }).withTypeProvider<ZodTypeProvider>();
  // Before anybody is known: strangers must not take all the files that a process may have open.
  const room = limitConnections(limits.streams);
  app.server.maxConnections = room.connections;
  if (room.shortage !== null) deps.log.warn(room.shortage);
  app.removeContentTypeParser('text/plain');
  let closing = false;
  refuseInOneForm(app);
  refuseEarly(app);
  // A browser may come to any host of a database.
  const cookie = cookieName(deps.thisHost?.deriveToken('cookie') ?? deps.dataDir);
  guardAccess(app, { tokens: deps.tokens, hosts: deps.hosts, cookie, closing: () => closing });
  const streams = new Streams(room.streams, deps.timers);
  const inbox = new InboxFeed(deps.store, deps.clock);
  const runFeed = new RunFeed(deps.store, deps.clock, deps.sticky);
  const metrics = createMetrics(deps, streams);
  app.addHook('onResponse', async (request, reply) => {
    metrics.answered(request.method, request.routeOptions.url ?? 'none', reply.statusCode, reply.elapsedTime);
    request.log.info({ method: request.method, route: request.routeOptions.url, status: reply.statusCode, ms: Math.round(reply.elapsedTime), by: request.caller?.actor.name }, 'answered');
  });
  const pages = new JournalPages(deps.store);
  const shared: Room = { ...deps, app, cookie, streams, inbox, runFeed, metrics, pages };
  describeApi(shared);
  for (const routes of [runRoutes, inboxRoutes, streamRoutes, evidenceRoutes, aboutRoutes, signInRoutes, consoleRoutes]) await app.register(async (part) => routes({ ...shared, app: part }));
  await app.ready();
  return {
    app,
    stopTaking: () => {
      closing = true;
    },
    close: async () => {
      closing = true;
      inbox.close();
      runFeed.close();
      pages.close();
      streams.close();
      metrics.close();
      await app.close();
    },
  };
}
