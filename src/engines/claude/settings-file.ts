// Claude Code's settings.json for one turn: the user's own, with sessions kept. Below `full` nothing in them may keep
// Parley's hook from being called. A read-only run also loses everything that lets a tool call pass unasked.
import { asObject, isObject, parseJson, type JsonObject } from '../../kernel/json.js';
import type { TurnFileNeeds } from '../engine.js';

// According to its documentation, Claude Code deletes sessions after 30 days by default. A run may wait longer.
const KEEP_DAYS = 36_500;

// Returns null for text that is not a JSON object.
export function claudeSettings(current: string | null, { permission }: TurnFileNeeds): string | null {
  const settings = parseJson(current ?? '{}');
  if (!isObject(settings)) return null;
  const hooked = permission === 'full' ? settings : withHooks(settings);
  const own = permission === 'read-only' ? withoutGrants(hooked) : hooked;
  return `${JSON.stringify({ ...own, cleanupPeriodDays: KEEP_DAYS }, null, 2)}\n`;
}

// The user's own hooks stay off if they are.
function withHooks(settings: JsonObject): JsonObject {
  const { disableAllHooks, allowedHttpHookUrls: _urls, httpHookAllowedEnvVars: _names, hooks, ...rest } = settings;
  return disableAllHooks === true || hooks === undefined ? rest : { ...rest, hooks };
}

// Hooks can allow a call as well.
function withoutGrants(settings: JsonObject): JsonObject {
  const { hooks: _hooks, permissions, sandbox, ...rest } = settings;
  const { allow: _allow, additionalDirectories: _folders, ...rules } = asObject(permissions) ?? {};
  return {
    ...rest,
    permissions: rules,
    ...(isObject(sandbox) ? { sandbox: { ...sandbox, autoAllowBashIfSandboxed: false } } : {}),
  };
}
