// Shows and changes single settings of config.json. The file is checked as a whole before it is replaced, so a change
// never leaves a file that the server would refuse.
import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { nearestRealPath } from '../files/real-path.js';
import { replaceFile } from '../files/replace-file.js';
import type { Json } from '../kernel/json.js';
import { nearestName } from '../kernel/nearest-name.js';
import { refusal } from '../run/request-error.js';
import { SETTINGS, valueAt, withValue, type SettingInfo } from './list-settings.js';
import { checkSettings, readConfig } from './read-settings.js';

export interface SettingValue extends SettingInfo {
  readonly value: Json;
  // "default", "config.json", or the name of an environment variable.
  readonly origin: string;
}

export interface ChangedSetting extends Pick<SettingInfo, 'applies'> {
  readonly value: Json;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function showSettings(dataDir: string, env: Environment): readonly SettingValue[] {
  const config = readConfig(dataDir);
  return SETTINGS.map((info) => {
    const variable = variableOf(info.name);
    const fromEnvironment = variable === null ? undefined : env[variable];
    if (variable !== null && fromEnvironment) return { ...info, value: fromEnvironment, origin: variable };
    const written = valueAt(config, info.name);
    return written === undefined
      ? { ...info, value: info.default, origin: 'default' }
      : { ...info, value: written, origin: 'config.json' };
  });
}

export function showSetting(dataDir: string, name: string, env: Environment): SettingValue {
  const { name: known } = findSetting(name);
  return showSettings(dataDir, env).find((setting) => setting.name === known) as SettingValue;
}

// `text` is JSON, or a plain text for a setting that takes one. Null removes the setting from the file.
export function changeSetting(dataDir: string, name: string, text: string | null): ChangedSetting {
  const info = findSetting(name);
  const value = text === null ? undefined : parseValue(info, text);
  const path = join(dataDir, 'config.json');
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const unlock = lock(`${path}.lock`);
  try {
    const config = withValue(readConfig(dataDir), info.name, value);
    checkSettings(path, config);
    replaceFile(nearestRealPath(path), `${JSON.stringify(config, null, 2)}\n`);
  } finally {
    unlock();
  }
  return { value: value ?? info.default, applies: info.applies };
}

function findSetting(name: string): SettingInfo {
  const setting = SETTINGS.find((info) => info.name === name);
  if (setting) return setting;
  const names = SETTINGS.map((info) => info.name);
  const inside = names.filter((known) => known.startsWith(`${name}.`));
  if (inside.length > 0) throw refusal('INVALID_ARGUMENT.setting_group', { name, settings: inside.join(', ') });
  const near = nearestName(name, names);
  throw near === null
    ? refusal('INVALID_ARGUMENT.setting_unknown', { name })
    : refusal('INVALID_ARGUMENT.setting_misspelled', { name, nearest: near });
}

// A text that is not JSON, such as a path, is taken as it is. A number for a setting that takes a text is a text.
function parseValue({ schema }: SettingInfo, text: string): Json {
  let parsed: Json;
  try {
    parsed = JSON.parse(text) as Json;
  } catch {
    return text;
  }
  return !schema.safeParse(parsed).success && schema.safeParse(text).success ? text : parsed;
}

function variableOf(name: string): string | null {
  const engine = /^engines\.(.+)\.bin$/.exec(name)?.[1];
  return engine === undefined ? null : `PARLEY_${engine.toUpperCase().replaceAll('-', '_')}_BIN`;
}

// Two changes at the same time: the second one is refused, so neither is lost.
function lock(path: string): () => void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw refusal('INVALID_ARGUMENT.settings_locked', { file: path });
    throw error;
  }
  return () => rmSync(path, { force: true });
}
