// engines.json in the data directory: facts about engines, so that the next process need not probe them again. It is
// only a cache: a missing or damaged file is treated as empty, and no run depends on a successful write.
import { join } from 'node:path';
import { readTextSync } from '../files/read-file.js';
import { replaceFileMeanwhile } from '../files/replace-file.js';
import { isObject, parseJson, type Json, type JsonObject } from '../kernel/json.js';

const MAX_BYTES = 256 * 1024;
const MAX_ENTRIES = 64;

export class KnowledgeFile {
  readonly #path: string | null;
  #writing: Promise<void> = Promise.resolve();

  // Without a data directory (null) nothing is stored.
  constructor(dataDir: string | null) {
    this.#path = dataDir === null ? null : join(dataDir, 'engines.json');
  }

  // Returns the entries of one section by key.
  read(section: string): ReadonlyMap<string, JsonObject> {
    const entries = Object.entries(objectOf(this.#content()[section]));
    return new Map(entries.flatMap(([key, value]) => (isObject(value) ? [[key, value] as const] : [])));
  }

  // Sets one entry, or removes it (null). Keeps the entries that another process wrote meanwhile, and drops the oldest
  // ones above the limit.
  set(section: string, key: string, value: JsonObject | null): void {
    const path = this.#path;
    if (path === null) return;
    this.#writing = this.#writing
      .then(async () => {
        const content = this.#content();
        const { [key]: _old, ...others } = objectOf(content[section]);
        const entries = Object.entries(others).slice(-MAX_ENTRIES + 1);
        const next = {
          ...content,
          [section]: Object.fromEntries(value === null ? entries : [...entries, [key, value]]),
        };
        await replaceFileMeanwhile(path, `${JSON.stringify(next, null, 2)}\n`);
      })
      .catch(() => {});
  }

  // Resolves when all entries set so far are written.
  written(): Promise<void> {
    return this.#writing;
  }

  #content(): JsonObject {
    if (this.#path === null) return {};
    try {
      return objectOf(parseJson(readTextSync(this.#path, { maxBytes: MAX_BYTES, links: 'follow' }) ?? ''));
    } catch {
      return {};
    }
  }
}

function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}
