// The HTTP service of one data directory: an app with all routes, ready to listen. It owns only its connections; the
// orchestrator continues without it.
import { phrase } from '../messages/phrase.js';
import Fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { EngineReport } from '../engines/engine-report.js';
import type { RunDefaults } from '../journal/deps.js';
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
import { refuseInOneForm } from './api/error-envelope.js';
import { FailedAttempts, type AttemptLimits } from './access/failed-attempts.js';
import type { OtherHosts } from './evidence/forward-files.js';
import { InboxFeed } from './streams/inbox-feed.js';
import { JournalPages } from './streams/journal-pages.js';
import { readLargeBodiesInTurn, refuseBodiesOfUnknownCallers } from './limits/large-bodies.js';
import { limitConnections } from './limits/limit-connections.js';
import { createMetrics, type Metrics } from './figures/metrics.js';
import { refuseAddress, refuseEarly, refuseOnSocket } from './limits/refuse-early.js';
import { OutputPace } from './streams/output-pace.js';
import { RunFeed } from './streams/run-feed.js';
import { addRoutes } from './routes/add-routes.js';
import { linkOf } from './routes/sign-in.js';
import { Streams } from './streams/streams.js';
import { CODE_MS, Sessions } from './access/sessions.js';
import type { Caller, TokenBook } from './access/token-book.js';
import { VerifyQueue, type VerifyLimits, type VerifyRun } from './evidence/verify-queue.js';
import { limitUnreadBytes, UNREAD_LIMITS, UnreadBytes, type UnreadLimits } from './limits/unread-bytes.js';
import { setWriteDeadline } from './limits/write-deadline.js';
import type { RunContract } from '../run/waiting/run-contract.js';

export interface ServiceDeps {
  readonly store: Store;
  readonly orchestrator: Orchestrator;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly dataDir: string;
  // The folder of the built console; null: there is none.
  readonly consoleDir: string | null;
  readonly version: string;
  readonly tokens: TokenBook;
  readonly access: AccessStore;
  // The address that people use: for links, and for Secure cookies if it is https.
  readonly baseUrl: () => string;
  // Addresses and networks of proxies whose X-Forwarded-For header is trusted.
  readonly trustedProxies?: readonly string[];
  // The limits for wrong tokens and codes.
  readonly attemptLimits?: AttemptLimits;
  readonly log: FastifyBaseLogger;
  readonly engines: () => Promise<readonly EngineReport[]>;
  // The values of new runs that do not set their own.
  readonly runDefaults: () => RunDefaults;
  // Checks a run, in a separate process.
  readonly verify: VerifyRun;
  // Hosts that have files of runs which this host does not have; null: there are none.
  readonly otherHosts?: OtherHosts | null;
  // This host within the cluster; null: it is the only one.
  readonly thisHost?: ThisHost | null;
  // The chart and the error codes of its runs.
  readonly contract?: RunContract;
  readonly limits: ServiceLimits;
  // The folders in which runs may work; null: anywhere.
  readonly workspaceRoots: (caller: Caller) => readonly string[] | null;
  // Host names with ports, as in a Host header; known once the server listens.
  readonly hosts: () => ReadonlySet<string>;
}

interface ThisHost {
  readonly hostId: string;
  // Whether its lease is valid.
  mayRun(): boolean;
  // Equal for all hosts of a database; not a secret.
  readonly databaseId: string;
  // A signature of the challenge and the host id.
  prove(challenge: string): string;
}

export interface ServiceLimits {
  readonly bodyBytes: number;
  readonly streams: number;
  // The maximum per token; null: a quarter.
  readonly streamsPerToken: number | null;
  // Expensive requests at a time, per token.
  readonly expensivePerToken: number;
  readonly checks: VerifyLimits;
  // Response bytes that clients have not read.
  readonly unreadBytes: UnreadLimits;
  // A client that reads nothing for this long is disconnected.
  readonly writeMs: number;
  // A request that has not arrived completely by then is refused.
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

// Shared by all routes.
export interface RouteContext extends ServiceDeps {
  readonly app: FastifyInstance;
  // The name of the session cookie.
  readonly cookie: string;
  readonly sessions: Sessions;
  readonly attempts: FailedAttempts;
  readonly streams: Streams;
  readonly pages: JournalPages;
  readonly inbox: InboxFeed;
  readonly runFeed: RunFeed;
  readonly metrics: Metrics;
  readonly checks: VerifyQueue;
  // Whether the server is shutting down.
  readonly isClosing: () => boolean;
}

export interface Service {
  readonly app: FastifyInstance;
  // Creates a link that signs one browser in as the operator, for the terminal that started the server.
  createLink(): Promise<string>;
  // Rejects changes from now on; reading is still possible.
  stopTaking(): void;
  // Ends all streams and connections.
  close(): Promise<void>;
}

export async function createService(deps: ServiceDeps): Promise<Service> {
  const { limits } = deps;
  const app = Fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestMs,
    // We refuse requests without a Host header ourselves, in the usual form.
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
  // Applies before authentication: unauthenticated callers must not exhaust the open files of the process.
  const room = limitConnections(limits.streams);
  app.server.maxConnections = room.connections;
  if (room.shortage !== null) deps.log.warn(room.shortage);
  app.removeContentTypeParser('text/plain');
  setWriteDeadline(app.server, limits.writeMs);
  let closing = false;
  refuseInOneForm(app);
  refuseEarly(app);
  // A browser may connect to any host of a database.
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
  const pace = new OutputPace();
  const streams = new Streams({ limit: room.streams, perToken }, deps.timers, pace);
  const checks = new VerifyQueue(async (runId, signal, onProgress) => {
    await deps.orchestrator.restoreFiles(runId);
    signal.throwIfAborted();
    return deps.verify(runId, signal, onProgress);
  }, limits.checks);
  const inbox = new InboxFeed(deps.store, deps.clock);
  const isRecovering = (runId: string): boolean => deps.orchestrator.isRecovering(runId);
  const runFeed = new RunFeed({ store: deps.store, clock: deps.clock, isRecovering }, deps.contract);
  const metrics = createMetrics(deps, streams);
  app.addHook('onResponse', async (request, reply) => {
    metrics.answered({
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      ms: reply.elapsedTime,
    });
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
  const pages = new JournalPages(deps.store, pace);
  refuseBodiesOfUnknownCallers(app);
  readLargeBodiesInTurn(app);
  limitUnreadBytes(app, new UnreadBytes(limits.unreadBytes));
  limitExpensive(app, new CallerLimit(limits.expensivePerToken, phrase('expensive_requests')));
  const shared: RouteContext = {
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
  await addRoutes(shared);
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
