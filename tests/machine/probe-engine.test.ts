// Reports for engines that are installed, missing, of another version or broken; and that versions agree everywhere.
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ENGINE_PACKAGES } from '../../scripts/install-engines.mjs';
import {
  probeEngine as probeInMessages,
  type ProbeDeps,
  type ProgramAnswer,
} from '../../src/machine/programs/probe-engine.js';
import { ENGINES, findEngine } from '../../src/engines/registry.js';

// With the English text of each advice.
async function probeEngine(...args: Parameters<typeof probeInMessages>) {
  const { advice, ...report } = await probeInMessages(...args);
  return { ...report, advice: advice.map(({ text }) => text) };
}

interface World {
  readonly programs?: Readonly<Record<string, string>>;
  readonly prints?: Readonly<Record<string, string>>;
  // The stderr output of its help, or the way in which the probe fails.
  readonly help?: string | { readonly problem: string };
}

const HELP =
  'Usage: codex exec resume [OPTIONS] [SESSION_ID] [PROMPT]\n  -r, --resume   Resume\n  -s, --session  session id ' +
  'to continue\n';

function worldOf({ programs = {}, prints = {}, help = HELP }: World): ProbeDeps & { readonly calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    find: async (binary) => {
      calls.push(`find ${binary}`);
      return programs[binary] ?? null;
    },
    run: async (bin, args): Promise<ProgramAnswer> => {
      calls.push([bin, ...args].join(' '));
      if (args.at(-1) === '--help') return typeof help === 'string' ? { stdout: '', stderr: help } : help;
      const stdout = prints[bin];
      return stdout === undefined ? { problem: 'ended with code 7' } : { stdout, stderr: '' };
    },
  };
}

// The program of an engine, if its name differs from the engine's.
const PROGRAMS: Readonly<Record<string, string>> = { 'codex-app-server': 'codex' };

const REAL: readonly (readonly [string, string, string])[] = [
  ['claude', '2.1.326 (Claude Code)\n', '2.1.326'],
  ['codex', 'codex-cli 0.166.0\n', '0.166.0'],
  ['codex-app-server', 'codex-cli 0.166.0\n', '0.166.0'],
  ['gemini', '0.61.0\n', '0.61.0'],
  ['iflow', '0.5.19\n', '0.5.19'],
  ['opencode', '1.18.33\n', '1.18.33'],
  ['rehearsal', 'rehearsal 1.0.0\n', '1.0.0'],
];

test.each(REAL)('%s in the version it was proved on is found without advice', async (name, output, version) => {
  const program = PROGRAMS[name] ?? name;
  const deps = worldOf({ programs: { [program]: `/usr/bin/${program}` }, prints: { [`/usr/bin/${program}`]: output } });
  expect(await probeEngine(findEngine(name), deps)).toEqual({
    engine: name,
    bin: `/usr/bin/${program}`,
    version,
    provedVersion: version,
    resumes: true,
    advice: [],
  });
  const { resume } = findEngine(name).probe;
  expect(deps.calls).toEqual([
    `find ${program}`,
    `/usr/bin/${program} --version`,
    ...(resume ? [[`/usr/bin/${program}`, ...resume.args].join(' ')] : []),
  ]);
});

test.each(ENGINES.map(({ name }) => name))(
  '%s that is not installed is reported with how to get it, and nothing is started',
  async (name) => {
    const deps = worldOf({});
    const { probe } = findEngine(name);
    expect(await probeEngine(findEngine(name), deps)).toEqual({
      engine: name,
      bin: null,
      version: null,
      provedVersion: probe.provedVersion,
      resumes: null,
      advice: [`${probe.binary} not found: ${probe.install}`],
    });
    expect(deps.calls).toEqual([`find ${PROGRAMS[name] ?? name}`]);
  },
);

test('another version than the proved one is reported with both versions', async () => {
  const deps = worldOf({ programs: { codex: '/usr/bin/codex' }, prints: { '/usr/bin/codex': 'codex-cli 0.167.1\n' } });
  const report = await probeEngine(findEngine('codex'), deps);
  expect(report.version).toBe('0.167.1');
  expect(report.advice).toEqual(['version 0.167.1 is not the one the parser was proved on (0.166.0)']);
});

test('a program without a version is reported as possibly the wrong program', async () => {
  const deps = worldOf({
    programs: { gemini: '/usr/bin/gemini' },
    prints: { '/usr/bin/gemini': 'Gemini desktop client\n' },
  });
  const report = await probeEngine(findEngine('gemini'), deps);
  expect(report).toMatchObject({ bin: '/usr/bin/gemini', version: null });
  expect(report.advice).toEqual(['/usr/bin/gemini --version did not tell a version: is it the right program?']);
  expect(deps.calls.at(-1)).toBe('/usr/bin/gemini --version');
});

test('a failing program is reported with its problem and not called again', async () => {
  const deps = worldOf({ programs: { opencode: '/usr/bin/opencode' } });
  const report = await probeEngine(findEngine('opencode'), deps);
  expect(report).toMatchObject({
    bin: '/usr/bin/opencode',
    version: null,
    resumes: null,
    advice: ['/usr/bin/opencode --version ended with code 7'],
  });
  expect(deps.calls).toEqual(['find opencode', '/usr/bin/opencode --version']);
});

test.each(ENGINES.filter(({ probe }) => probe.resume))(
  '$name in a version that cannot continue a conversation is reported, by its own help',
  async ({ name, probe }) => {
    const report = {
      programs: { [probe.binary]: `/bin/${name}` },
      prints: { [`/bin/${name}`]: `codex-cli ${probe.provedVersion}\n${probe.provedVersion} (Claude Code)\n` },
    };
    const asked = [`/bin/${name}`, ...(probe.resume?.args ?? [])].join(' ');
    expect(await probeEngine(findEngine(name), worldOf({ ...report, help: 'Usage: it [PROMPT]\n' }))).toMatchObject({
      resumes: false,
      advice: [`it cannot continue conversations: ${asked} does not show how`],
    });
    expect(
      await probeEngine(findEngine(name), worldOf({ ...report, help: { problem: 'ended with code 2' } })),
    ).toMatchObject({
      resumes: null,
      advice: [`whether it can continue conversations is not known: ${asked} ended with code 2`],
    });
  },
);

test('a configured program is asked, and PATH is not searched', async () => {
  const deps = worldOf({
    programs: { codex: '/usr/bin/codex' },
    prints: { '/opt/my codex': 'codex-cli 0.166.0\n', '/usr/bin/codex': 'codex-cli 0.1.0\n' },
  });
  expect(await probeEngine(findEngine('codex'), deps, '/opt/my codex')).toMatchObject({
    bin: '/opt/my codex',
    version: '0.166.0',
    advice: [],
  });
  expect(deps.calls).toEqual(['/opt/my codex --version', '/opt/my codex exec resume --help']);
});

const PRINTED: readonly (readonly [string, string, string | null])[] = [
  ['codex', 'codex-cli 0.166.0', '0.166.0'],
  ['claude', '2.1.326 (Claude Code)', '2.1.326'],
  ['claude', 'Error: claude native binary not installed.\n', null],
  ['claude', '2.1.326', null],
  ['codex', 'codex-cli 0.166.0-alpha.3\n', '0.166.0-alpha.3'],
  ['codex', 'WARNING: proceeding, even though we could not create PATH aliases\ncodex-cli 0.166.0\n', '0.166.0'],
  ['codex', '0.166.0', null],
  ['codex', '', null],
  ['gemini', '0.61.0', '0.61.0'],
  ['gemini', '0.62.0-nightly.20261115.abc1234\n', '0.62.0-nightly.20261115.abc1234'],
  ['gemini', 'Warning: 256-color support not detected.\n0.61.0\n', '0.61.0'],
  ['gemini', 'node v20.20.2 is too old', null],
  ['iflow', '0.5.19\r\n', '0.5.19'],
  ['iflow', 'unknown', null],
  ['opencode', '1.18.33', '1.18.33'],
  ['opencode', 'local', null],
  ['rehearsal', 'rehearsal 1.0.0', '1.0.0'],
  ['rehearsal', '1.0.0', null],
];

test.each(PRINTED)('what %s prints as %j is read as version %j', (name, output, version) => {
  expect(findEngine(name).probe.parseVersion(output)).toBe(version);
});

const cellsOf = (row: string) =>
  row
    .split('|')
    .slice(2, -1)
    .map((cell) => cell.trim());

test('tests, probes and documentation name the same engine versions', () => {
  const page = readFileSync(new URL('../../docs/reference/engines.md', import.meta.url), 'utf8');
  const [header = ''] = /^\| \|.*$/m.exec(page) ?? [];
  const [proved = ''] = /^\| proved version \|.*$/m.exec(page) ?? [];
  const named = Object.fromEntries(
    cellsOf(header).map((name, index) => [
      name.toLowerCase(),
      /^\d+\.\d+\.\d+/.exec(cellsOf(proved)[index] ?? '')?.[0],
    ]),
  );
  const known = ENGINES.filter(({ probe }) => probe.bundled === undefined).map(
    ({ name, probe }) => [name, probe.provedVersion] as const,
  );
  expect(named).toEqual({ ...Object.fromEntries(known), rehearsal: undefined });
  // iFlow can no longer be installed, and the program of another engine is that engine's.
  const installed = Object.entries(ENGINE_PACKAGES).map(([name, { version }]) => [name, version]);
  expect(installed).toEqual(
    known.filter(([name]) => name !== 'iflow' && findEngine(name).probe.programOf === undefined),
  );
  for (const [name, { name: packageName }] of Object.entries(ENGINE_PACKAGES))
    expect(findEngine(name).probe.install).toBe(`npm install -g ${packageName}`);
});

test('only the rehearsal comes with Parley, and its script is where the probe says', () => {
  expect(ENGINES.filter(({ probe }) => probe.bundled !== undefined).map(({ name }) => name)).toEqual(['rehearsal']);
  expect(existsSync(new URL(`../../dist/${findEngine('rehearsal').probe.bundled}`, import.meta.url))).toBe(true);
});
