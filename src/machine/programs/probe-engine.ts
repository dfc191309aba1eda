// Checks whether an engine is installed, in a version that the parser was tested with, and can continue a conversation.
// Starts the program only with `--version` and for its help.
import type { Engine } from '../../engines/engine.js';
import { createMessages, type Message } from '../../kernel/message.js';

// The output of a program that succeeded, or its problem, for instance "does not answer within 10 s".
export type ProgramAnswer =
  | { readonly stdout: string; readonly stderr: string }
  | { readonly problem: Message | string };

export interface ProbeDeps {
  // Resolves to the full path of a program, or null.
  find(binary: string): Promise<string | null>;
  run(bin: string, args: readonly string[]): Promise<ProgramAnswer>;
}

export interface ProbeReport {
  readonly engine: string;
  readonly bin: string | null;
  readonly version: string | null;
  readonly provedVersion: string;
  // Whether it can continue a conversation in a new process; null: unknown.
  readonly resumes: boolean | null;
  // What a person should know or do.
  readonly advice: readonly Message[];
}

export const PROBE_TEXTS = {
  'probe.not_found': '{program} not found: {install}',
  'probe.other_version': 'version {version} is not the one the parser was proved on ({proved})',
  'probe.failed': '{command} {problem}',
  'probe.no_version': '{command} did not tell a version: is it the right program?',
  'probe.resume_unknown': 'whether it can continue conversations is not known: {failure}',
  'probe.no_resume': 'it cannot continue conversations: {command} does not show how',
} as const;

const probeText = createMessages(PROBE_TEXTS);

export async function probeEngine(
  { name, probe }: Engine,
  deps: ProbeDeps,
  configuredBin?: string,
): Promise<ProbeReport> {
  const bin = configuredBin ?? (await deps.find(probe.binary));
  const report = { engine: name, bin, version: null, provedVersion: probe.provedVersion, resumes: null };
  if (bin === null)
    return {
      ...report,
      advice: [probeText('probe.not_found', { program: probe.binary, install: howToInstall(name, probe) })],
    };
  const { version, problem } = await probeVersion(bin, probe, deps);
  if (version === null) return { ...report, advice: [problem] };
  const { resumes, advice } = await probeResume(bin, probe.resume, deps);
  const unproved =
    version === probe.provedVersion ? [] : [probeText('probe.other_version', { version, proved: probe.provedVersion })];
  return { ...report, version, resumes, advice: [...unproved, ...advice] };
}

// Most are a command, which is the same in every language.
function howToInstall(engine: string, { install }: Engine['probe']): Message {
  return { key: `install.${engine}`, values: {}, text: install };
}

export type VersionAnswer =
  | { readonly version: string; readonly problem: null }
  | { readonly version: null; readonly problem: Message };

export async function probeVersion(
  bin: string,
  { versionArgs, parseVersion }: Engine['probe'],
  deps: Pick<ProbeDeps, 'run'>,
): Promise<VersionAnswer> {
  const output = await deps.run(bin, versionArgs);
  const command = [bin, ...versionArgs].join(' ');
  if ('problem' in output)
    return { version: null, problem: probeText('probe.failed', { command, problem: output.problem }) };
  const version = parseVersion(output.stdout);
  return version === null
    ? { version, problem: probeText('probe.no_version', { command }) }
    : { version, problem: null };
}

// Reads the program's help instead of resuming a conversation, which needs a session and a model and costs money.
export async function probeResume(
  bin: string,
  rule: Engine['probe']['resume'],
  deps: Pick<ProbeDeps, 'run'>,
): Promise<Pick<ProbeReport, 'resumes' | 'advice'>> {
  if (!rule) return { resumes: true, advice: [] };
  const help = await deps.run(bin, rule.args);
  const command = [bin, ...rule.args].join(' ');
  if ('problem' in help)
    return {
      resumes: null,
      advice: [
        probeText('probe.resume_unknown', {
          failure: probeText('probe.failed', { command, problem: help.problem }),
        }),
      ],
    };
  // OpenCode prints its help to stderr.
  if (rule.shows.test(help.stdout) || rule.shows.test(help.stderr)) return { resumes: true, advice: [] };
  return { resumes: false, advice: [probeText('probe.no_resume', { command })] };
}
