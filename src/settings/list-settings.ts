// The settings one by one, by dotted name such as sessions.park_after_sec: their schema, default and description.
import * as z from 'zod';
import { ENGINES } from '../engines/registry.js';
import { isObject, type Json, type JsonObject } from '../kernel/json.js';
import { DEFAULT_SETTINGS, settingsSchema, type Applies } from './settings.js';

export interface SettingInfo {
  // "slots", "recovery.queued", "engines.codex.bin".
  readonly name: string;
  readonly schema: z.ZodType;
  // Null: the setting has no default, or its default depends on the machine; the description explains it.
  readonly default: Json;
  // What applies while the setting has no value: "by the number of cores". Null: the default is a value.
  readonly whenEmpty: string | null;
  readonly description: string;
  // Whether a running server applies a changed value.
  readonly applies: Applies;
}

export const SETTINGS: readonly SettingInfo[] = collect(
  '',
  settingsSchema,
  JSON.parse(JSON.stringify(DEFAULT_SETTINGS)) as Json,
  { description: '', applies: 'after a restart' },
);

// Settings in objects are listed one by one; lists are one setting.
function collect(
  name: string,
  schema: z.ZodType,
  fallback: Json,
  group: Pick<SettingInfo, 'description' | 'applies'>,
): SettingInfo[] {
  const meta = schema.meta() ?? {};
  const description = meta.description ?? group.description;
  const applies = (meta['x-applies'] as Applies | undefined) ?? group.applies;
  const inner = unwrap(schema);
  const collectMember = (key: string, member: z.ZodType): SettingInfo[] =>
    collect(name === '' ? key : `${name}.${key}`, member, memberOf(fallback, key), { description, applies });
  if (inner instanceof z.ZodObject)
    return Object.entries(inner.shape as Record<string, z.ZodType>).flatMap(([key, member]) =>
      collectMember(key, member),
    );
  if (inner instanceof z.ZodRecord)
    return ENGINES.flatMap((engine) => collectMember(engine.name, inner.valueType as z.ZodType));
  const whenEmpty = (meta['x-when-empty'] as string | undefined) ?? null;
  return [{ name, schema, default: fallback, whenEmpty, description, applies }];
}

// Returns the value of a setting in the content of config.json; undefined if it is not there.
export function valueAt(config: Json, name: string): Json | undefined {
  let at: Json | undefined = config;
  for (const key of name.split('.')) {
    if (!isObject(at) || !Object.hasOwn(at, key)) return undefined;
    at = memberOf(at, key);
  }
  return at;
}

// Returns the content of config.json with another value of one setting. Undefined removes it and its empty group.
export function withValue(config: Json, name: string, value: Json | undefined): JsonObject {
  return withMember(config, name.split('.'), value);
}

function withMember(config: Json, [key = '', ...rest]: readonly string[], value: Json | undefined): JsonObject {
  const { [key]: member, ...others } = isObject(config) ? config : {};
  if (rest.length === 0) return value === undefined ? others : { ...others, [key]: value };
  const inner = withMember(member ?? {}, rest, value);
  return Object.keys(inner).length === 0 ? others : { ...others, [key]: inner };
}

function memberOf(value: Json | undefined, key: string): Json {
  return isObject(value) && Object.hasOwn(value, key) ? (value[key] ?? null) : null;
}

function unwrap(schema: z.ZodType): z.ZodType {
  let at: unknown = schema;
  for (;;) {
    if (
      at instanceof z.ZodDefault ||
      at instanceof z.ZodPrefault ||
      at instanceof z.ZodOptional ||
      at instanceof z.ZodExactOptional ||
      at instanceof z.ZodNullable
    )
      at = at.unwrap();
    else if (at instanceof z.ZodPipe) at = at.in;
    else return at as z.ZodType;
  }
}
