// parley config: lists, shows, changes and checks the settings of a data directory.
import { join } from 'node:path';
import { isObject, type JsonObject } from '../../kernel/json.js';
import { changeSetting, showSetting, showSettings, type SettingValue } from '../../settings/edit-settings.js';
import { refusal } from '../../run/request-error.js';
import { findProblems, readConfig } from '../../settings/read-settings.js';
import { safeText } from '../../terminal/safe-text.js';
import { renderTable } from '../../terminal/table.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { styleOf } from '../style.js';
import { explainPhrase, texts } from '../language/language.js';

interface ConfigOptions extends DataOption {
  readonly json?: boolean;
}

export async function listSettingsCommand(
  { name, ...options }: ConfigOptions & { readonly name?: string },
  io: Io,
): Promise<number> {
  if (name !== undefined) throw refusal('INVALID_ARGUMENT.config_command', { name });
  const settings = showSettings(dataDirOf(options, io), io.env);
  if (options.json)
    for (const setting of settings) io.stdout.write(`${JSON.stringify(toJson(withoutAddresses(setting)))}\n`);
  else io.stdout.write(renderList(settings, io));
  return EXIT.ok;
}

export async function getSettingCommand(name: string, options: ConfigOptions, io: Io): Promise<number> {
  const setting = showSetting(dataDirOf(options, io), name, io.env);
  io.stdout.write(`${JSON.stringify(options.json ? toJson(setting) : setting.value)}\n`);
  return EXIT.ok;
}

export async function setSettingCommand(
  name: string,
  { text, ...options }: ConfigOptions & { readonly text: string | null },
  io: Io,
): Promise<number> {
  const { value, applies } = changeSetting(dataDirOf(options, io), name, text);
  const { settingDefault, settingApplies } = texts().say;
  const shown = text === null ? settingDefault(name) : `${name} = ${JSON.stringify(value)}`;
  io.stdout.write(`${shown}\n${settingApplies[applies]}\n`);
  return EXIT.ok;
}

export async function checkSettingsCommand(options: ConfigOptions, io: Io): Promise<number> {
  const dataDir = dataDirOf(options, io);
  const path = join(dataDir, 'config.json');
  const { settingsValid, settingProblems } = texts().say;
  const problems = findProblems(readConfig(dataDir));
  if (problems.length === 0) {
    io.stdout.write(`${settingsValid(path)}\n`);
    return EXIT.ok;
  }
  const lines = problems.map((problem) => `  ${safeText(explainPhrase(problem))}\n`);
  io.stderr.write(`parley: ${settingProblems(path, problems.length)}\n${lines.join('')}`);
  return EXIT.usage;
}

function toJson({ name, value, origin, default: fallback, whenEmpty, description, applies }: SettingValue): JsonObject {
  return { type: 'setting', name, value, origin, default: fallback, when_empty: whenEmpty, description, applies };
}

function renderList(settings: readonly SettingValue[], io: Io): string {
  const { say } = texts();
  const rows = settings
    .map(withoutAddresses)
    .map(({ name, value, origin, whenEmpty, applies }) => [
      name,
      value === null
        ? say.settingUnset(say.settingEmpty[String(whenEmpty)] ?? String(whenEmpty))
        : JSON.stringify(value),
      origin === 'default' ? say.settingOrigin : origin,
      say.settingWhen[applies],
    ]);
  const { setting, value, origin, applies } = say.settingHeaders;
  return renderTable(
    rows,
    [{ header: setting, whole: true }, { header: value }, { header: origin }, { header: applies }],
    styleOf(io),
  );
}

// The address of a webhook may be a secret, so a list shows names only. `parley config get webhooks` shows everything.
function withoutAddresses(setting: SettingValue): SettingValue {
  const { name, value } = setting;
  if (name !== 'webhooks' || !Array.isArray(value)) return setting;
  return { ...setting, value: value.map((webhook) => (isObject(webhook) ? (webhook['name'] ?? null) : null)) };
}
