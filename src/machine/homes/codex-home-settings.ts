// Writes config.toml for the home of an app-server instance: the user's settings with the strictest sandbox as default.
// A working folder is trusted only if the user's own settings trust it, whatever Codex has written here meanwhile.
import { stringify, type TomlTable } from 'smol-toml';
import { hideKeys } from '../../engines/codex/settings-file.js';
import { parseToml, tableOf } from '../../engines/codex/toml.js';

export interface Folder {
  readonly cwd: string;
  // The root of its repository, or the folder itself.
  readonly project: string;
}

// `own` is the user's own config.toml. Returns null if one of the two is not TOML.
export function homeSettings(config: string | null, own: string | null, folder: Folder | null): string | null {
  const settings = parseToml(config ?? '');
  const users = parseToml(own ?? '');
  if (settings === null || users === null) return null;
  return stringify({
    ...settings,
    shell_environment_policy: hideKeys(settings['shell_environment_policy']),
    // Codex uses these values for threads that set none.
    ...('default_permissions' in settings ? { default_permissions: ':read-only' } : { sandbox_mode: 'read-only' }),
    projects:
      folder === null
        ? tableOf(settings['projects'])
        : decide(tableOf(settings['projects']), tableOf(users['projects']), folder),
  });
}

// Codex checks the trust level of the folder and of its repository.
function decide(projects: TomlTable, users: TomlTable, { cwd, project }: Folder): TomlTable {
  const levelOf = (folder: string): unknown => tableOf(users[folder])['trust_level'];
  const isDecided = [cwd, project].some((folder) => levelOf(folder) !== undefined);
  const decided = [...new Set([cwd, project])].map((folder) => {
    const { trust_level: _, ...others } = tableOf(projects[folder]);
    const level = isDecided ? levelOf(folder) : 'untrusted';
    return [folder, level === undefined ? others : { ...others, trust_level: level as string }];
  });
  return { ...projects, ...(Object.fromEntries(decided) as TomlTable) };
}
