// parley serve: the runs of a data directory for other programs and people, until it is told to stop. Then turns at
// work get a bounded time; runs that wait are untouched. A second signal makes it hurry.
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { pino, type Logger } from 'pino';
import { ENGINES } from '../../engines/registry.js';
import type { Engine } from '../../engines/engine.js';
import type { EngineReport } from '../../engines/engine-report.js';
import { loadHooks } from '../../hooks/load-hooks.js';
import { findProgram } from '../../host/machine.js';
import { lookForLogin } from '../../engines/find-login.js';
import type { EngineKnowledge } from '../../host/engine-knowledge.js';
import { packageVersion } from '../../host/package-version.js';
import { readSettings, type Settings } from '../../host/settings.js';
import { redact } from '../../kernel/redact.js';
import type { Interrupted } from '../../orchestrator/orchestrator-settings.js';
import { RequestError } from '../../run/request-error.js';
import { forgetServer, noteServer } from '../../service/server-file.js';
import { createService, DEFAULT_LIMITS, type Service } from '../../service/service.js';
import { safeText } from '../../terminal/safe-text.js';
import { paint } from '../../terminal/style.js';
import { abandonOnCrash } from '../conversation/abandon-on-crash.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { explainInterrupted } from './explain-interrupted.js';
import { EXIT, type Io } from '../io.js';
import { databaseUrl } from '../open-data.js';
import { describeOpen } from './open-to-others.js';
import { machineOf } from '../machine-of.js';
import { logFailure, openWriter } from '../open-writer.js';
import { writerOf } from '../writer-of.js';
import { openTokens, publicUrlOf, recordSettings, workspaceRootsOf, type ServedTokens } from './serve-access.js';
import { startBeside } from './serve-beside.js';
import { readLiveServer } from './server.js';
import { styleOf } from '../style.js';
import { verifyInChild } from './verify-child.js';
import { readVersion } from '../version.js';
import { reasonOf } from '../../kernel/system-error.js';

export interface ServeOptions extends DataOption {
  readonly host: string;
  readonly port: number;
  readonly logLevel?: string;
  readonly json?: boolean;
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1']);

export async function serveCommand(options: ServeOptions, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const settings = readSettings(path);
  const hooks = loadHooks(settings.webhooks, io.env);
  const publicUrl = publicUrlOf(settings);
  // Where it listens, once it does.
  let url = '';
  const baseUrl = (): string => publicUrl?.origin ?? url;
  const log = openLog(options, io);
  const crash = abandonOnCrash(path, io, (error) =>
    log.fatal({ err: error }, 'internal error, please report it; the server stops'),
  );
  // From here on: a signal that comes while it starts stops it as one that comes later.
  const stopped = untilStopped(io);
  // Hosts that see the same files serve them side by side; none of them is the server of the directory.
  const isAlone = databaseUrl(io) === null || settings.cluster.files !== 'shared';
  const other = isAlone ? readLiveServer(path) : null;
  if (other)
    throw new RequestError('DATA_DIR_IN_USE', `${path} is served already at ${other.url}, by process ${other.pid}`);
  const writer = await openWriter(path, io, {
    serves: true,
    baseUrl,
    // Only when it listens: who cannot be reached begins nothing.
    plays: false,
    onFailure: (runId, error) => {
      logFailure(path, io, runId, error);
      log.error({ err: error, run_id: runId === '' ? undefined : runId }, 'a turn or a look at the queue failed');
    },
  });
  crash.orchestrator = writer.orchestrator;
  const { cluster } = writer;
  const open = describeOpen(path, io.machine.platform);
  if (open !== null) log.warn(open);
  const warn = (error: unknown): void =>
    log.error({ err: error }, 'the tokens cannot be read: those that are not known yet are refused');
  let served: ServedTokens | null = null;
  try {
    served = await openTokens({ path, cluster, access: writer.data.access, clock: writer.clock }, io, warn);
    await recordSettings(path, writer.data.access, writer.clock, io);
    const hosts = new Set(settings.allowed_hosts.map((host) => host.toLowerCase()));
    const service = await createService({
      store: writer.data.store,
      orchestrator: writer.orchestrator,
      clock: writer.clock,
      timers: io.timers,
      dataDir: writer.data.path,
      consoleDir: join(io.machine.programs, 'console'),
      version: readVersion(),
      tokens: served.tokens,
      access: writer.data.access,
      baseUrl,
      trustedProxies: settings.trusted_proxies,
      otherHosts: cluster && { token: cluster.hostToken, hasFiles: cluster.hasFiles, whereFiles: cluster.whereFiles },
      thisHost: cluster,
      log,
      sticky: settings.sessions.sticky,
      engines: async () => ENGINES.map((engine) => lookAt(engine, io, settings, writer.knowledge)),
      verify: verifyInChild(writer.data.path, io),
      limits: { ...DEFAULT_LIMITS, streams: settings.max_streams, streamsPerToken: settings.max_streams_per_token },
      workspaceRoots: workspaceRootsOf(settings, io, (warning) => log.warn(warning)),
      hosts: () => hosts,
    });
    crash.stopTaking = service.stopTaking;
    // Before it listens: who comes back to a known port at once must be known to be right there.
    if (options.port !== 0) addHosts(hosts, options.host, String(options.port));
    if (settings.cluster.url !== null) hosts.add(new URL(settings.cluster.url).host.toLowerCase());
    if (publicUrl !== null) hosts.add(publicUrl.host);
    url = await listen(service, options);
    addHosts(hosts, options.host, new URL(url).port || '80');
    writer.orchestrator.play();
    if (isAlone) noteServer(path, { ...writerOf(io), url });
    const reached = settings.cluster.url ?? (LOOPBACK.has(options.host) ? url : null);
    if (reached !== null) await cluster?.setUrl(reached);
    else if (cluster && settings.cluster.files === 'host')
      log.warn('cluster.url in config.json does not say where other hosts reach this one: they cannot show its files');
    const beside = startBeside(writer, { settings, hooks, log }, io);
    await tell(path, url, { settings, options, link: () => service.createLink() }, io);
    await stopped;
    log.info('stopping');
    const hurry = new Promise<void>(
      (resolve) => void [io.onSignal('SIGINT', resolve), io.onSignal('SIGTERM', resolve)],
    );
    service.stopTaking();
    const interrupted = await writer.orchestrator.close({
      graceMs: settings.shutdown_grace_sec * 1000,
      hurry,
      onDrain: (turns) => announceDrain(turns, settings, log, io),
    });
    reportInterrupted(interrupted, settings, log, io);
    await Promise.all([beside.stopSweeping(), beside.stopSending(hurry)]);
    // Until here a command that finds this server is told that it is stopping.
    if (isAlone) forgetServer(path);
    await service.close();
    return EXIT.ok;
  } finally {
    await served?.close();
    await writer.close();
  }
}

// Says at once what the stop waits for.
function announceDrain(running: number, { shutdown_grace_sec: grace }: Settings, log: Logger, io: Io): void {
  const turns = running === 1 ? '1 running turn' : `${running} running turns`;
  const text = `Waiting up to ${grace} s for ${turns} to end (shutdown_grace_sec).`;
  if (io.terminal.stderr) io.stderr.write(`Stopping. ${text} Press Ctrl-C again to stop now.\n`);
  else log.info({ turns: running }, text);
}

// Says what the stop cut off, and which settings would have kept it.
function reportInterrupted({ turns, queued }: Interrupted, { recovery }: Settings, log: Logger, io: Io): void {
  const text = explainInterrupted({ turns, queued }, recovery);
  if (text === null) return;
  if (io.terminal.stderr) io.stderr.write(`${text}\n`);
  else log.warn({ turns, queued }, text);
}

function openLog({ logLevel }: ServeOptions, io: Io): Logger {
  // On a terminal a person reads; what goes well is then not worth a line.
  const level = logLevel ?? (io.terminal.stderr ? 'warn' : 'info');
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: {
        err: (error: unknown) =>
          error instanceof Error
            ? { type: error.name, message: safeText(redact(error.message)), stack: safeText(redact(error.stack ?? '')) }
            : safeText(redact(String(error))),
      },
    },
    io.stderr,
  );
}

async function listen({ app }: Service, { host, port }: ServeOptions): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE')
      throw new RequestError(
        'INVALID_ARGUMENT',
        `port ${port} is in use on ${host}; choose another with --port, 0 for any`,
      );
    throw new RequestError('INVALID_ARGUMENT', `cannot listen on ${host}, port ${port}: ${reasonOf(error)}`);
  }
  const { port: real } = app.server.address() as AddressInfo;
  return `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : bracketed(host)}:${real}`;
}

// As they stand in a Host header, which names no port where it is the usual one.
function addHosts(hosts: Set<string>, host: string, port: string): void {
  for (const name of ['127.0.0.1', 'localhost', '[::1]', bracketed(host)])
    hosts.add(`${name.toLowerCase()}${port === '80' ? '' : `:${port}`}`);
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

function untilStopped(io: Io): Promise<void> {
  return new Promise((resolve) => {
    const stops = (['SIGINT', 'SIGTERM'] as const).map((signal) =>
      io.onSignal(signal, () => {
        for (const stop of stops) stop();
        resolve();
      }),
    );
  });
}

interface Telling {
  readonly settings: Settings;
  readonly options: ServeOptions;
  // Makes a link that signs one browser in.
  readonly link: () => Promise<string>;
}

// A secret is printed only where a person reads it: logs and programs get the address.
async function tell(path: string, url: string, telling: Telling, io: Io): Promise<void> {
  const {
    settings,
    options: { host, json },
    link,
  } = telling;
  const { workspace_roots: roots, webhooks, public_url: publicUrl } = settings;
  const reached = publicUrl === null ? {} : { public_url: publicUrl };
  if (json) return void io.stdout.write(`${JSON.stringify({ type: 'serving', url, ...reached, data: path })}\n`);
  const style = styleOf(io);
  const lines: [string, string][] = [
    ['open', io.terminal.stdout ? await link() : (publicUrl ?? url)],
    ['API', `${url}/docs`],
    ['data', path],
    ...(roots === null ? [] : [['runs may work in', roots.join(', ')] as [string, string]]),
    ...(webhooks.length === 0 ? [] : [['webhooks', webhooks.map(({ name }) => name).join(', ')] as [string, string]]),
  ];
  const hint = io.terminal.stdout
    ? 'The link signs one browser in, once, within 10 minutes. For another one: parley link\n'
    : 'To sign a browser in: parley link\n';
  const warning = LOOPBACK.has(host)
    ? ''
    : paint(
        style,
        'yellow',
        `Reachable from other machines (${host}): whoever has the token may run agents here. Put TLS before it.`,
      ) + '\n';
  const title = paint(style, 'bold', `Parley ${readVersion()} is serving`);
  const facts = lines.map(([name, text]) => `  ${name.padEnd(18)}${safeText(text)}`).join('\n');
  io.stdout.write(`${title}\n${facts}\n${hint}${warning}Ctrl-C stops it; runs that wait are kept.\n`);
}

// By files and by earlier probes. A program that has not been probed yet is probed in the background.
function lookAt(engine: Engine, io: Io, settings: Settings, knowledge: EngineKnowledge): EngineReport {
  const { program, by } = findProgram(engine, machineOf(io), settings);
  const version =
    program === null ? null : (packageVersion(engine, program) ?? knowledge.known(engine)?.version ?? null);
  void knowledge.learn(engine);
  const { binary, install, provedVersion } = engine.probe;
  const { by: found, isMissing } = lookForLogin(engine, machineOf(io).user);
  // Null: it needs none.
  const login = found !== null ? true : isMissing ? false : null;
  const advice =
    program === null
      ? by === 'PATH'
        ? `${binary} not found: ${install}`
        : `${by} is not a program`
      : login === false
        ? `not logged in: ${engine.home.howToLogIn}`
        : null;
  return {
    name: engine.name,
    found: program !== null,
    program: program?.at(-1) ?? null,
    version,
    proved_version: provedVersion,
    login,
    forks: engine.command.buildFork !== undefined,
    advice,
  };
}
