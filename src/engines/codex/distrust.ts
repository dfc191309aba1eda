// Codex trusts a folder by itself as soon as it may write there, and then starts what the folder's own settings name, outside
// of its sandbox. So the settings of a run say that the folder is not trusted, unless the user has decided about it.
import { dirname } from 'node:path';
import type { TurnFileNeeds } from '../engine.js';

export function distrustWorkspace(config: string | null, { cwd, permission }: TurnFileNeeds): string {
  const text = config ?? '';
  if (permission !== 'workspace-write' || isDecided(text, cwd)) return text;
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}\n[projects.${JSON.stringify(cwd)}]\ntrust_level = "untrusted"\n`;
}

// About the folder or one that it is in. Settings that have all projects in one table cannot be added to.
function isDecided(config: string, folder: string): boolean {
  if (/^\s*projects\s*=/m.test(config)) return true;
  const headers = config.split('\n').map((line) => /^\s*\[\s*projects\s*\.\s*(?:"(.*)"|'(.*)')\s*\]/.exec(line)).flatMap((match) => (match ? [match[1] ?? match[2] ?? ''] : []));
  const decided = new Set(headers);
  for (let at = folder; ; at = dirname(at)) {
    if (decided.has(at) || decided.has(JSON.stringify(at).slice(1, -1))) return true;
    if (at === dirname(at)) return false;
  }
}
