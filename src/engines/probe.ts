// Is an engine there, and in a version whose output is known? Looks only; starts nothing but `--version`.
import type { Engine } from './engine.js';

export interface ProbeDeps {
  // The full path of a program, or null.
  find(binary: string): Promise<string | null>;
  // What a program prints to stdout; null if it could not be run.
  run(bin: string, args: readonly string[]): Promise<string | null>;
}

export interface ProbeReport {
  readonly engine: string;
  readonly bin: string | null;
  readonly version: string | null;
  readonly provedVersion: string;
  readonly advice: string | null;
}

export async function probeEngine(engine: Engine, deps: ProbeDeps, configuredBin?: string): Promise<ProbeReport> {
  const { probe } = engine;
  const bin = configuredBin ?? (await deps.find(probe.binary));
  const report = { engine: engine.name, bin, provedVersion: probe.provedVersion };
  if (bin === null) return { ...report, version: null, advice: `${probe.binary} not found: ${probe.install}` };
  const output = await deps.run(bin, probe.versionArgs);
  const version = output === null ? null : probe.parseVersion(output);
  if (version === null) return { ...report, version, advice: `${bin} ${probe.versionArgs.join(' ')} did not tell a version: is it the right program?` };
  return { ...report, version, advice: version === probe.provedVersion ? null : `version ${version} is not the one the parser was proved on (${probe.provedVersion})` };
}
