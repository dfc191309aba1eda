// Gemini's settings for one turn, written over the user's own. They are JSON in which comments may stand.
import { asObject, isObject, parseJson, type Json, type JsonObject } from '../../kernel/json.js';
import type { TurnFileNeeds } from '../engine.js';

export function writeSettings(current: string | null, needs: TurnFileNeeds): string | null {
  const settings = parseJson(stripComments(current ?? '{}'));
  return isObject(settings) ? `${JSON.stringify(settingsFor(settings, needs), null, 2)}\n` : null;
}

// A string is matched first, so that what looks like a comment in it stays. An open comment goes to the end, as with
// Gemini.
const STRING_OR_COMMENT = /"(?:[^"\\]|\\[^])*"|\/\/[^\r\n]*|\/\*[^]*?(?:\*\/|$)/g;

export function stripComments(text: string): string {
  return text.replace(/^\uFEFF/, '').replace(STRING_OR_COMMENT, (match) => (match.startsWith('"') ? match : ' '));
}

// Sessions are kept (Gemini deletes them otherwise, also one that was just resumed), a failing service is tried a few
// times and not for minutes, the question tool is trusted, else it is not offered. Whether the workspace is trusted,
// the command says.
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
    // Otherwise a word behind an @ is looked for as a part of any file name below the folder.
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

// Gemini puts variables into every string: a dollar sign is the default of one that is never set.
function literally(text: string): string {
  return text.replaceAll('$', '${PARLEY_NEVER_SET:-$}');
}
