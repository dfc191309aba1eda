// Parses TOML as Codex writes its settings. Invalid text gives a result instead of an error, and a value that is not a
// table becomes an empty table.
import { parse, type TomlTable } from 'smol-toml';

export function parseToml(text: string): TomlTable | null {
  try {
    return parse(text);
  } catch {
    return null;
  }
}

export function tableOf(value: unknown): TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
    ? (value as TomlTable)
    : {};
}
