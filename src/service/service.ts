// The durable runs of one data directory over HTTP: an app with all its routes, ready to listen. It owns nothing but
// its connections; the orchestrator behind it goes on without it.
import Fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { EngineReport } from '../engines/engine-report.js';
import type { Clock } from '../kernel/clock.js';
import { invariant } from '../kernel/invariant.js';
import type { Orchestrator } from '../orchestrator/orchestrator.js';
import type { Timers } from '../process/timers.js';
import type { AccessStore } from '../store/access-store.js';
import type { Store } from '../store/store.js';
import { cookieName, guardAccess } from './access/access.js';
import { trustProxies } from './access/client-address.js';
import { CallerLimit, limitExpensive } from './access/caller-limits.js';
import { BY_ZOD } from './api/compilers.js';
import { describeApi } from './api/describe-api.js';
import { refuseInOneForm } from './api/error-envelope.js';
import { FailedAttempts, type AttemptLimits } from './access/failed-attempts.js';
import type { OtherHosts } from './evidence/forward-files.js';
import { InboxFeed } from './streams/inbox-feed.js';
import { JournalPages } from './streams/journal-pages.js';
import { readLargeBodiesInTurn, refuseBodiesOfUnknownCallers } from './limits/large-bodies.js';
import { limitConnections } from './limits/limit-connections.js';
import { createMetrics, type Metrics } from './figures/metrics.js';
import { refuseAddress, refuseEarly, refuseOnSocket } from './limits/refuse-early.js';
import { RunFeed } from './streams/run-feed.js';
import { aboutRoutes } from './routes/about.js';
import { auditRoutes } from './routes/audit.js';
import { consoleRoutes } from './routes/console.js';
import { evidenceRoutes } from './routes/evidence.js';
import { inboxRoutes } from './routes/inbox.js';
import { runRoutes } from './routes/runs.js';
import { linkOf, signInRoutes } from './routes/sign-in.js';
import { streamRoutes } from './routes/streams.js';
import { Streams } from './streams/streams.js';
import { CODE_MS, Sessions } from './access/sessions.js';
import type { Caller, TokenBook } from './access/token-book.js';
import { VerifyQueue, type VerifyLimits, type VerifyRun } from './evidence/verify-queue.js';
import { limitUnreadBytes, UNREAD_LIMITS, UnreadBytes, type UnreadLimits } from './limits/unread-bytes.js';
import { setWriteDeadline } from './limits/write-deadline.js';

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
  readonly access: AccessStore;
  // The address that people use: for links, and for Secure cookies where it is https.
  readonly baseUrl: () => string;
  // Addresses and networks of proxies whose X-Forwarded-For header is believed.
  readonly trustedProxies?: readonly string[];
  // How wrong tokens and codes are slowed down.
  readonly attemptLimits?: AttemptLimits;
  readonly log: FastifyBaseLogger;
  readonly engines: () => Promise<readonly EngineReport[]>;
  // Checks a run, in a process of its own.
  readonly verify: VerifyRun;
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
  // The same for all hosts of its database, and no secret.
  readonly databaseId: string;
  // A signature of the challenge and the host id.
  prove(challenge: string): string;
}

export interface ServiceLimits {
  readonly bodyBytes: number;
  readonly streams: number;
  // How many of them one token may hold; null: a quarter.
  readonly streamsPerToken: number | null;
  // Requests that read or send much, at once, for one token.
  readonly expensivePerToken: number;
  readonly checks: VerifyLimits;
  // Bytes of responses that were written and not read.
  readonly unreadBytes: UnreadLimits;
  // A client that reads nothing for so long is cut off.
  readonly writeMs: number;
  // A request that has not arrived by then is refused.
  readonly requestMs: number;
}

export const DEFAULT_LIMITS: ServiceLimits = {
  bodyBytes: 16 * 1024 * 1024,
  streams: 4000,
  streamsPerToken: null,
  expensivePerToken: 16,
  checks: { total: 16, perCaller: 2 },
  unreadBytes: UNREAD_LIMITS,
  writeMs: 30_000,
  requestMs: 30_000,
};

// What the routes share.
export interface Room extends ServiceDeps {
  readonly app: FastifyInstance;
  // The name of the one that a browser is signed in by.
  readonly cookie: string;
  readonly sessions: Sessions;
  readonly attempts: FailedAttempts;
  readonly streams: Streams;
  readonly pages: JournalPages;
  readonly inbox: InboxFeed;
  readonly runFeed: RunFeed;
  readonly metrics: Metrics;
  readonly checks: VerifyQueue;
  // The server is being stopped.
  readonly isClosing: () => boolean;
}

export interface Service {
  readonly app: FastifyInstance;
  // A link that signs one browser in as the operator, for the terminal that the server was started from.
  createLink(): Promise<string>;
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
    http: {
      requireHostHeader: false,
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: Math.min(1000, limits.requestMs),
    },
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
  setWriteDeadline(app.server, limits.writeMs);
  let closing = false;
  refuseInOneForm(app);
  refuseEarly(app);
  // A browser may come to any host of a database.
  const cookie = cookieName(deps.thisHost?.databaseId ?? deps.dataDir);
  const onProblem = (error: unknown): void =>
    deps.log.error({ err: error }, 'the administrative journal or the last use of a token could not be written');
  const sessions = new Sessions({ access: deps.access, tokens: deps.tokens, clock: deps.clock, onFailure: onProblem });
  const attempts = new FailedAttempts({
    clock: deps.clock,
    timers: deps.timers,
    ...(deps.attemptLimits ? { limits: deps.attemptLimits } : {}),
    record: (at, body) => deps.access.appendAudit({ at, actor: null, address: null, type: 'sign_in.failed', body }),
    onFailed: (address, failures) =>
      deps.log.warn({ address, failures }, 'a wrong token, code or session was presented'),
    onProblem,
  });
  const isTrustedProxy = trustProxies(deps.trustedProxies ?? []);
  const { tokens, hosts } = deps;
  guardAccess(app, { tokens, sessions, attempts, isTrustedProxy, hosts, cookie, closing: () => closing });
  const perToken = limits.streamsPerToken ?? Math.max(1, Math.floor(room.streams / 4));
  const streams = new Streams({ limit: room.streams, perToken }, deps.timers);
  const checks = new VerifyQueue(deps.verify, limits.checks);
  const inbox = new InboxFeed(deps.store, deps.clock);
  const runFeed = new RunFeed(deps.store, deps.clock, deps.sticky);
  const metrics = createMetrics(deps, streams);
  app.addHook('onResponse', async (request, reply) => {
    metrics.answered(request.method, request.routeOptions.url ?? 'none', reply.statusCode, reply.elapsedTime);
    request.log.info(
      {
        method: request.method,
        route: request.routeOptions.url,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
        by: request.caller?.actor.name,
        address: request.address,
      },
      'answered',
    );
  });
  const pages = new JournalPages(deps.store);
  refuseBodiesOfUnknownCallers(app);
  readLargeBodiesInTurn(app);
  limitUnreadBytes(app, new UnreadBytes(limits.unreadBytes));
  limitExpensive(app, new CallerLimit(limits.expensivePerToken, 'expensive requests'));
  const shared: Room = {
    ...deps,
    app,
    cookie,
    sessions,
    attempts,
    streams,
    inbox,
    runFeed,
    metrics,
    pages,
    checks,
    isClosing: () => closing,
  };
  describeApi(shared);
  for (const routes of [
    runRoutes,
    inboxRoutes,
    streamRoutes,
    evidenceRoutes,
    aboutRoutes,
    signInRoutes,
    auditRoutes,
    consoleRoutes,
  ])
    await app.register(async (part) => routes({ ...shared, app: part }));
  await app.ready();
  return {
    app,
    createLink: async () => {
      const operator = deps.tokens.findByName(null);
      invariant(operator, 'the operator has a token');
      const trace = { at: deps.clock.now(), actor: operator.actor, address: null };
      const { code } = await sessions.createCode(operator, CODE_MS, trace);
      return linkOf(deps.baseUrl(), code);
    },
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
      await attempts.close();
      await checks.close();
      await app.close();
    },
  };
}
