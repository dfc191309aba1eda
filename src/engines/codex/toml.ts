// TOML as Codex writes its settings: text that is none is an answer, and what is no table counts as an empty one.
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
