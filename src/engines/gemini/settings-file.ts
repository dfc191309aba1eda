// Gemini's settings for one turn, merged over the user's own, which are JSON with comments.
import { asObject, isObject, parseJson, type Json, type JsonObject } from '../../kernel/json.js';
import type { TurnFileNeeds } from '../engine.js';

export function writeSettings(current: string | null, needs: TurnFileNeeds): string | null {
  const settings = parseJson(stripComments(current ?? '{}'));
  return isObject(settings) ? `${JSON.stringify(settingsFor(settings, needs), null, 2)}\n` : null;
}

// Matches strings first, so that text in a string that looks like a comment is kept. An unclosed comment extends to the
// end, as in Gemini.
const STRING_OR_COMMENT = /"(?:[^"\\]|\\[^])*"|\/\/[^\r\n]*|\/\*[^]*?(?:\*\/|$)/g;

export function stripComments(text: string): string {
  return text.replace(/^\uFEFF/, '').replace(STRING_OR_COMMENT, (match) => (match.startsWith('"') ? match : ' '));
}

// Keeps sessions (Gemini deletes them otherwise, even one that was just resumed), retries a failing service a few times
// instead of for minutes, and trusts the question tool, which is not offered otherwise. The command decides whether the
// workspace is trusted.
function settingsFor(settings: JsonObject, { ask, permission }: TurnFileNeeds): JsonObject {
  const { parley: _old, ...servers } = asObject(settings.mcpServers) ?? {};
  const [command = '', ...args] = (ask ?? []).map(literally);
  const security = asObject(settings.security);
  const context = asObject(settings.context);
  return {
    ...settings,
    general: {
      ...asObject(settings.general),
      enableAutoUpdate: false,
      enableAutoUpdateNotification: false,
      maxAttempts: 3,
      sessionRetention: { enabled: false },
    },
    // Otherwise Gemini searches for a word after an @ in all file names below the folder.
    context: { ...context, fileFiltering: { ...asObject(context?.fileFiltering), enableRecursiveFileSearch: false } },
    security: { ...security, folderTrust: { ...asObject(security?.folderTrust), enabled: true } },
    ...(permission === 'full' ? {} : { advanced: { ...asObject(settings.advanced), ignoreLocalEnv: true } }),
    ...(ask !== null && isObject(settings.mcp) ? { mcp: letIn(settings.mcp) } : {}),
    mcpServers: ask === null ? servers : { ...servers, parley: { command, args, trust: true } },
  };
}

// The user's own list of servers must not hide the question tool.
function letIn(mcp: JsonObject): JsonObject {
  const { allowed, excluded } = mcp;
  return {
    ...mcp,
    ...(Array.isArray(allowed) ? { allowed: [...without(allowed), 'parley'] } : {}),
    ...(Array.isArray(excluded) ? { excluded: without(excluded) } : {}),
  };
}

function without(names: readonly Json[]): Json[] {
  return names.filter((name) => name !== 'parley');
}

// Gemini expands variables in every string: a dollar sign is written as the default of a variable that is never set.
function literally(text: string): string {
  return text.replaceAll('$', '${PARLEY_NEVER_SET:-$}');
}
