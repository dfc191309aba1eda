// parley doctor: reports which parts of the setup work, which are missing, and how to fix them. Changes nothing, except
// for the totals of the metrics with --recount.
import type { Engine } from '../../engines/engine.js';
import { probeEngine, type ProbeReport } from '../../machine/programs/probe-engine.js';
import { ENGINES } from '../../engines/registry.js';
import { findProgram, type FoundProgram } from '../../machine/programs/find-program.js';
import { lookForLogin, type LoginState } from '../../machine/logins/find-login.js';
import { queryProgram } from '../../machine/programs/query-program.js';
import { readSettings } from '../../settings/read-settings.js';
import { DEFAULT_SETTINGS, type Settings } from '../../settings/settings.js';
import { RequestError } from '../../run/request-error.js';
import { safeText } from '../../terminal/safe-text.js';
import { paint, type Ink } from '../../terminal/style.js';
import { EXIT, type Io } from '../io.js';
import { machineOf } from '../machine-of.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { createRunCheck } from '../reading/check-run.js';
import type { DamageOptions } from './find-damage.js';
import { lookAtData, lookAtTokens } from './look-at-data.js';
import { lookAtDatabase } from './look-at-database.js';
import { databaseUrl, recountTotals } from '../open-data.js';
import { describeOpen } from '../serving/open-to-others.js';
import { styleOf } from '../style.js';
import { readVersion } from '../version.js';
import { sayError, sayMessage, texts } from '../language/language.js';

// The time limit for each probe; the slowest programs need about two seconds.
const ANSWER_LIMIT_MS = 10_000;

export interface Finding {
  readonly name: string;
  // missing: something does not work without it; note: good to know.
  readonly level: 'ok' | 'note' | 'missing';
  readonly text: string;
}

export interface DoctorOptions extends DataOption {
  readonly json?: boolean;
  readonly full?: boolean;
  readonly recount?: boolean;
}

export async function doctorCommand(options: DoctorOptions, io: Io, limitMs = ANSWER_LIMIT_MS): Promise<number> {
  const path = dataDirOf(options, io);
  if (options.recount) await recountTotals(path, io);
  const look: DamageOptions = {
    full: options.full ?? false,
    monotonicMs: () => performance.now(),
    checkRun: createRunCheck(path, io),
  };
  const url = databaseUrl(io);
  const findings: Finding[] = [
    {
      name: 'parley',
      level: 'ok',
      text: texts().doctor.version(readVersion(), process.versions.node, io.machine.platform),
    },
    ...(await lookAtData(path, { ...look, isShared: url !== null })),
  ];
  const open = describeOpen(path, io.machine.platform, texts().doctor);
  if (open !== null) findings.push({ name: 'modes', level: 'note', text: open });
  if (url === null) findings.push(...lookAtTokens(path, { isPreset: Boolean(io.env['PARLEY_TOKEN']) }));
  if (url !== null) findings.push(...(await lookAtDatabase(url, io.clock.now(), look)));
  const { settings, problem } = lookAtSettings(path);
  if (problem !== null) findings.push({ name: 'config', level: 'missing', text: problem });
  const engines = await lookAtEngines(settings, limitMs, io);
  if (engines === 'interrupted') return EXIT.interrupted;
  findings.push(...engines);
  const broken = findings.some(({ name, level }) => level === 'missing' && NEEDED.has(name));
  if (options.json) io.stdout.write(`${JSON.stringify({ type: 'doctor', ok: !broken, findings })}\n`);
  else io.stdout.write(render(findings, io));
  return broken ? EXIT.failed : EXIT.ok;
}

// Broken settings do not keep the engines from being probed.
function lookAtSettings(path: string): { settings: Settings; problem: string | null } {
  try {
    return { settings: readSettings(path), problem: null };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { settings: DEFAULT_SETTINGS, problem: sayError(error) };
  }
}

// Probes one engine after the other: starting a CLI is expensive.
async function lookAtEngines(settings: Settings, limitMs: number, io: Io): Promise<Finding[] | 'interrupted'> {
  const machine = machineOf(io);
  const interrupt = new AbortController();
  const stops = (['SIGINT', 'SIGTERM'] as const).map((signal) => io.onSignal(signal, () => interrupt.abort()));
  const findings: Finding[] = [];
  for (const engine of ENGINES) {
    const located = findProgram(engine, machine, settings);
    const report = await probeEngine(engine, {
      find: async () => located.program?.at(-1) ?? null,
      run: (_bin, args) =>
        queryProgram({
          engine,
          program: located.program ?? [],
          args,
          user: machine.user,
          passthrough: settings.env_passthrough,
          limitMs,
          timers: io.timers,
          signal: interrupt.signal,
        }),
    });
    findings.push(describeEngine(engine, { found: located, report, login: lookForLogin(engine, machine.user) }));
    if (interrupt.signal.aborted) break;
  }
  for (const stop of stops) stop();
  return interrupt.signal.aborted ? 'interrupted' : findings;
}

function describeEngine(
  { name, home }: Engine,
  state: { readonly found: FoundProgram; readonly report: ProbeReport; readonly login: LoginState },
): Finding {
  const {
    found: { by },
    report: { bin, version, resumes, advice },
    login,
  } = state;
  const { doctor: t } = texts();
  const hints = advice.map(sayMessage);
  if (bin === null)
    return {
      name,
      level: 'missing',
      text: [...(by === 'PATH' ? [] : [t.notAProgram(by)]), ...hints].join(t.next),
    };
  const facts = [
    t.engine(version ?? t.unknownVersion, by === 'PATH' ? bin : by === 'bundled' ? t.bundled : by),
    ...(login.by === null ? [] : [t.loggedIn(login.by)]),
    ...(resumes ? [t.continues] : []),
  ];
  // Most are a command, which is the same in every language.
  const howTo = sayMessage({ key: `login.${name}`, values: {}, text: home.howToLogIn });
  const notes = [...hints, ...(login.isMissing ? [t.loggedOut(howTo)] : [])];
  return { name, level: notes.length > 0 ? 'note' : 'ok', text: [facts.join(t.and), ...notes].join(t.next) };
}

// Findings without which Parley cannot work; a missing engine is not one of them.
const NEEDED: ReadonlySet<string> = new Set([
  'data',
  'config',
  'database',
  'integrity',
  'damage',
  'totals',
  'audit',
  'tokens',
  'token',
]);
const MARKS: Readonly<Record<Finding['level'], readonly [string, Ink]>> = {
  ok: ['✓', 'green'],
  note: ['!', 'yellow'],
  missing: ['–', 'dim'],
};

function render(findings: readonly Finding[], io: Io): string {
  const style = styleOf(io);
  const width = Math.max(...findings.map(({ name }) => name.length));
  const lines = findings.map(
    ({ name, level, text }) => `${paint(style, ...markOf(name, level))} ${name.padEnd(width)} ${safeText(text)}`,
  );
  return `${lines.join('\n')}\n\n${texts().say.doctorHint}\n`;
}

function markOf(name: string, level: Finding['level']): [Ink, string] {
  if (level === 'missing' && NEEDED.has(name)) return ['red', '✗'];
  const [mark, ink] = MARKS[level];
  return [ink, mark];
}
