// The settings of a running process. A changed config.json is checked as a whole first; then the settings that apply at
// once get their new values, and the others keep the values that the process started with.
import { canonicalText, type Json } from '../kernel/json.js';
import { SETTINGS, valueAt, withValue } from './list-settings.js';
import { checkSettings, configPath, readConfig } from './read-settings.js';
import type { Settings } from './settings.js';

export interface SettingsChange {
  // The names of settings with a new value.
  readonly applied: readonly string[];
  // The names of settings whose value in the file differs from the one in force.
  readonly needRestart: readonly string[];
}

export class LiveSettings {
  readonly #dataDir: string;
  // The content of config.json that is in force.
  #config: Json;
  #current: Settings;

  // Refuses an invalid file.
  constructor(dataDir: string) {
    this.#dataDir = dataDir;
    this.#config = readConfig(dataDir);
    this.#current = checkSettings(configPath(dataDir), this.#config);
  }

  get current(): Settings {
    return this.#current;
  }

  // Reads the file again. Refuses an invalid file and then changes nothing.
  reload(): SettingsChange {
    const path = configPath(this.#dataDir);
    const next = readConfig(this.#dataDir);
    checkSettings(path, next);
    const changed = SETTINGS.filter(({ name }) => textAt(this.#config, name) !== textAt(next, name));
    const applied = changed.filter(({ applies }) => applies === 'at once');
    let merged = this.#config;
    for (const { name } of applied) merged = withValue(merged, name, valueAt(next, name));
    this.#current = checkSettings(path, merged);
    this.#config = merged;
    return {
      applied: applied.map(({ name }) => name),
      needRestart: changed.filter(({ applies }) => applies !== 'at once').map(({ name }) => name),
    };
  }
}

// A setting that is written with its default differs from one that is left out; to apply it changes nothing.
function textAt(config: Json, name: string): string {
  const value = valueAt(config, name);
  return value === undefined ? '' : canonicalText(value);
}
