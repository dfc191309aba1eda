// The settings of a run of Codex: the user's own, with two overrides. A folder is untrusted unless the user has trusted
// it: Codex trusts a folder as soon as it may write there, and then starts the programs in that folder's settings
// outside of its sandbox. And keys stay out of the commands that the agent runs.
import { stringify, type TomlTable } from 'smol-toml';
import type { TurnFileNeeds } from '../engine.js';
import { parseToml, tableOf } from './toml.js';

const HIDDEN = ['*KEY*', '*TOKEN*', '*SECRET*', '*PASSWORD*'];

// Returns null for invalid TOML.
export function codexSettings(config: string | null, needs: TurnFileNeeds): string | null {
  const settings = parseToml(config ?? '');
  if (!settings) return null;
  return stringify({
    ...settings,
    projects: distrust(tableOf(settings['projects']), needs),
    shell_environment_policy: hideKeys(settings['shell_environment_policy']),
  });
}

// Adds keys to the variables that the user excludes from the environment of commands.
export function hideKeys(value: unknown): TomlTable {
  const policy = tableOf(value);
  const excluded = Array.isArray(policy['exclude']) ? policy['exclude'] : [];
  return { ...policy, exclude: [...new Set([...excluded, ...HIDDEN])] };
}

// The trust of a folder is decided if the settings mention it or its repository, because Codex looks for both.
function distrust(projects: TomlTable, { cwd, project, permission }: TurnFileNeeds): TomlTable {
  const isDecided = [cwd, project].some((folder) => tableOf(projects[folder])['trust_level'] !== undefined);
  if (permission !== 'workspace-write' || isDecided) return projects;
  return { ...projects, [cwd]: { ...tableOf(projects[cwd]), trust_level: 'untrusted' } };
}
