// Codex trusts a folder by itself as soon as it may write there, and then starts what the folder's own settings name, outside
// of its sandbox. So the settings of a run say that the folder is not trusted, unless the user has decided about it.
import type { TurnFileNeeds } from '../engine.js';

export function distrustWorkspace(config: string | null, { cwd, project, permission }: TurnFileNeeds): string {
  const text = config ?? '';
  if (permission !== 'workspace-write' || isDecided(text, [cwd, project])) return text;
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}\n[projects.${JSON.stringify(cwd)}]\ntrust_level = "untrusted"\n`;
}

const HEADER = /^[ \t]*\[[ \t]*projects[ \t]*\.[ \t]*(?:"(.*)"|'(.*)')[ \t]*\]/gm;

// About the folder or its repository, where Codex itself looks. Settings that have all projects in one table cannot be added to.
function isDecided(config: string, folders: readonly string[]): boolean {
  if (/^[ \t]*projects[ \t]*=/m.test(config)) return true;
  const decided = new Set([...config.matchAll(HEADER)].map(([, quoted, literal]) => quoted ?? literal));
  return folders.some((folder) => decided.has(folder) || decided.has(JSON.stringify(folder).slice(1, -1)));
}
