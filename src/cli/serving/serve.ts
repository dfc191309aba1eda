// parley serve: serves the runs of a data directory over HTTP until a signal stops it. Running turns then get a bounded
// time to end; waiting runs are not affected. A second signal stops it immediately.
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { ENGINES } from '../../engines/registry.js';
import type { Engine } from '../../engines/engine.js';
import type { EngineReport } from '../../engines/engine-report.js';
import { loadHooks } from '../../hooks/load-hooks.js';
import { findProgram } from '../../machine/programs/find-program.js';
import { lookForLogin } from '../../machine/logins/find-login.js';
import type { EngineKnowledge } from '../../machine/programs/engine-knowledge.js';
import { packageVersion } from '../../machine/programs/package-version.js';
import { LiveSettings } from '../../settings/live-settings.js';
import { stampOf, type SettingsWatch } from '../../settings/watch-settings.js';
import type { Settings } from '../../settings/settings.js';
import type { Interrupted } from '../../orchestrator/orchestrator-settings.js';
import { refusal } from '../../run/request-error.js';
import { forgetServer, noteServer } from '../../service/server-file.js';
import { createService, DEFAULT_LIMITS, type Service } from '../../service/service.js';
import { safeText } from '../../terminal/safe-text.js';
import { paint } from '../../terminal/style.js';
import { textWidth } from '../../terminal/text-width.js';
import { abandonOnCrash } from '../conversation/abandon-on-crash.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { applySettings } from './apply-settings.js';
import { explainInterrupted } from './explain-interrupted.js';
import { EXIT, type Io } from '../io.js';
import { databaseUrl } from '../open-data.js';
import { describeOpen } from './open-to-others.js';
import { machineOf } from '../machine-of.js';
import { joinLogs, openLogFile, openServerLog } from '../open-log.js';
import { openWriter, runDefaultsOf } from '../open-writer.js';
import { writerOf } from '../writer-of.js';
import { openTokens, publicUrlOf, recordSettings, workspaceRootsOf, type ServedTokens } from './serve-access.js';
import { startBeside } from './serve-beside.js';
import { readLiveServer } from './server.js';
import { styleOf } from '../style.js';
import { verifyInChild } from './verify-child.js';
import { readVersion } from '../version.js';
import { explainReason } from '../../messages/system-reason.js';
import { contractFor } from '../../run/waiting/run-contract.js';
import { ENGLISH } from '../language/en.js';
import { texts } from '../language/language.js';

export interface ServeOptions extends DataOption {
  readonly host: string;
  readonly port: number;
  readonly logLevel?: string;
  readonly json?: boolean;
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1']);

export async function serveCommand(options: ServeOptions, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const stamp = stampOf(path);
  const live = new LiveSettings(path);
  // For what needs a restart.
  const settings = live.current;
  const hooks = loadHooks(settings.webhooks, io.env);
  const publicUrl = publicUrlOf(settings);
  // The address that the server listens on; empty before that.
  let url = '';
  const baseUrl = (): string => publicUrl?.origin ?? url;
  const log = openServerLog(levelOf(options, io), io);
  const file = openLogFile(path, io);
  const crash = abandonOnCrash(io, {
    log: file,
    report: (error) => log.fatal({ err: error }, 'internal error, please report it; the server stops'),
  });
  // Set up first, so that a signal during the start also stops the server.
  const stopped = untilStopped(io);
  // Hosts that share files serve the directory together, so none of them is its only server.
  const isAlone = databaseUrl(io) === null || settings.cluster.files !== 'shared';
  const other = isAlone ? readLiveServer(path) : null;
  if (other) throw refusal('DATA_DIR_IN_USE.server', { path, url: other.url, pid: other.pid });
  const writer = await openWriter(path, io, {
    serves: true,
    baseUrl,
    // Turns start only when the server listens: a server that cannot be reached must not start any.
    runsTurns: false,
    settings: live,
    log: joinLogs(file, log),
  });
  crash.orchestrator = writer.orchestrator;
  const { cluster } = writer;
  const open = describeOpen(path, io.machine.platform, ENGLISH.doctor);
  if (open !== null) log.warn(open);
  const warn = (error: unknown): void =>
    log.error({ err: error }, 'the tokens cannot be read; unknown tokens are refused');
  let served: ServedTokens | null = null;
  let watch: SettingsWatch | null = null;
  try {
    const place = { path, access: writer.data.access, clock: writer.clock };
    served = await openTokens({ ...place, cluster }, io, warn);
    await recordSettings(place, io);
    const ownHosts = new Set<string>();
    const allowedHosts = (): Set<string> =>
      new Set([...ownHosts, ...live.current.allowed_hosts.map((host) => host.toLowerCase())]);
    let hosts = allowedHosts();
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
      otherHosts: cluster && { token: cluster.hostToken, isHere: cluster.isHere, whereIs: cluster.whereIs },
      thisHost: cluster,
      log,
      contract: contractFor(settings.sessions),
      engines: async () =>
        ENGINES.map((engine) => reportEngine(engine, { settings: live.current, knowledge: writer.knowledge }, io)),
      runDefaults: () => runDefaultsOf(live.current),
      verify: verifyInChild(writer.data.path, io),
      limits: { ...DEFAULT_LIMITS, streams: settings.max_streams, streamsPerToken: settings.max_streams_per_token },
      workspaceRoots: workspaceRootsOf(live, io, (warning) => log.warn(warning)),
      hosts: () => hosts,
    });
    crash.stopTaking = service.stopTaking;
    // Set before it listens, because clients reconnect to a known port at once.
    if (options.port !== 0) addHosts(ownHosts, options.host, String(options.port));
    if (settings.cluster.url !== null) ownHosts.add(new URL(settings.cluster.url).host.toLowerCase());
    if (publicUrl !== null) ownHosts.add(publicUrl.host);
    hosts = allowedHosts();
    url = await listen(service, options);
    addHosts(ownHosts, options.host, new URL(url).port || '80');
    hosts = allowedHosts();
    writer.orchestrator.play();
    if (isAlone) noteServer(path, { ...writerOf(io), url });
    const reached = settings.cluster.url ?? (LOOPBACK.has(options.host) ? url : null);
    if (reached !== null) await cluster?.setUrl(reached);
    else if (cluster && settings.cluster.files === 'host')
      log.warn('cluster.url is not set in config.json, so other hosts cannot reach this one to show its files');
    const beside = startBeside(writer, { settings: live, hooks, log }, io);
    watch = applySettings({
      dataDir: path,
      settings: live,
      stamp,
      timers: io.timers,
      log,
      onApplied: async () => {
        hosts = allowedHosts();
        writer.applySettings();
        await recordSettings(place, io);
      },
    });
    await announce({ path, url, settings, options, link: () => service.createLink() }, io);
    await stopped;
    log.info('stopping');
    await watch.close();
    const hurry = new Promise<void>(
      (resolve) => void [io.onSignal('SIGINT', resolve), io.onSignal('SIGTERM', resolve)],
    );
    service.stopTaking();
    const interrupted = await writer.orchestrator.close({
      graceMs: live.current.shutdown_grace_sec * 1000,
      hurry,
      onDrain: (turns) => announceDrain(turns, { settings: live.current, log }, io),
    });
    reportInterrupted(interrupted, { settings: live.current, log }, io);
    await Promise.all([beside.stopSweeping(), beside.stopSending(hurry)]);
    // Until here, commands find this server and get SHUTTING_DOWN.
    if (isAlone) forgetServer(path);
    await service.close();
    return EXIT.ok;
  } finally {
    await watch?.close();
    await served?.close();
    await writer.close();
  }
}

interface StopReport {
  readonly settings: Settings;
  readonly log: Logger;
}

// Reports at once which turns the shutdown waits for.
function announceDrain(running: number, { settings, log }: StopReport, io: Io): void {
  const { shutdown_grace_sec: grace } = settings;
  const turns = running === 1 ? '1 running turn' : `${running} running turns`;
  const text = `Waiting up to ${grace} s for ${turns} to end (shutdown_grace_sec).`;
  if (io.terminal.stderr) io.stderr.write(`${texts().say.stopping(grace, running)}\n`);
  else log.info({ turns: running }, text);
}

// Reports the interrupted turns, and the settings that would have kept them.
function reportInterrupted({ turns, queued }: Interrupted, { settings, log }: StopReport, io: Io): void {
  const { stop } = io.terminal.stderr ? texts() : ENGLISH;
  const text = explainInterrupted({ turns, queued }, settings.recovery, stop);
  if (text === null) return;
  if (io.terminal.stderr) io.stderr.write(`${text}\n`);
  else log.warn({ turns, queued }, text);
}

// On a terminal a person reads the log, and successful requests would hide the rest.
function levelOf({ logLevel }: ServeOptions, io: Io): string {
  return logLevel ?? (io.terminal.stderr ? 'warn' : 'info');
}

async function listen({ app }: Service, { host, port }: ServeOptions): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') throw refusal('INVALID_ARGUMENT.port', { port, host });
    throw refusal('INVALID_ARGUMENT.listen', { host, port, reason: explainReason(error) });
  }
  const { port: real } = app.server.address() as AddressInfo;
  return `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : bracketed(host)}:${real}`;
}

// As in a Host header, which omits the default port.
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

interface Announcement {
  readonly path: string;
  readonly url: string;
  readonly settings: Settings;
  readonly options: ServeOptions;
  // Makes a link that signs one browser in.
  readonly link: () => Promise<string>;
}

// Prints the sign-in link, which is a secret, only on a terminal: logs and programs get the address without it.
async function announce({ path, url, settings, options, link }: Announcement, io: Io): Promise<void> {
  const { host, json } = options;
  const { workspace_roots: roots, webhooks, public_url: publicUrl } = settings;
  const reached = publicUrl === null ? {} : { public_url: publicUrl };
  if (json) return void io.stdout.write(`${JSON.stringify({ type: 'serving', url, ...reached, data: path })}\n`);
  const style = styleOf(io);
  const { say } = texts();
  const names = say.servingFacts;
  const lines: [string, string][] = [
    [names.open, io.terminal.stdout ? await link() : (publicUrl ?? url)],
    [names.api, `${url}/docs`],
    [names.data, path],
    ...(roots === null ? [] : [[names.roots, roots.join(', ')] as [string, string]]),
    ...(webhooks.length === 0
      ? []
      : [[names.webhooks, webhooks.map(({ name }) => name).join(', ')] as [string, string]]),
  ];
  const hint = io.terminal.stdout ? `${say.signInOnce}\n` : `${say.signIn}\n`;
  const warning = LOOPBACK.has(host) ? '' : paint(style, 'yellow', say.reachable(host)) + '\n';
  const title = paint(style, 'bold', say.serving(readVersion()));
  const facts = lines
    .map(([name, text]) => `  ${name}${' '.repeat(Math.max(1, 18 - textWidth(name)))}${safeText(text)}`)
    .join('\n');
  io.stdout.write(`${title}\n${facts}\n${hint}${warning}${say.stopServer}\n`);
}

// Uses files and the results of earlier probes. Starts a probe in the background for a program without a result.
function reportEngine(
  engine: Engine,
  { settings, knowledge }: { readonly settings: Settings; readonly knowledge: EngineKnowledge },
  io: Io,
): EngineReport {
  const { program, by } = findProgram(engine, machineOf(io), settings);
  const version =
    program === null ? null : (packageVersion(engine, program) ?? knowledge.known(engine)?.version ?? null);
  void knowledge.learn(engine);
  const { binary, install, provedVersion } = engine.probe;
  const { by: loginPath, isMissing } = lookForLogin(engine, machineOf(io).user);
  // Null: the engine needs no login.
  const login = loginPath !== null ? true : isMissing ? false : null;
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
