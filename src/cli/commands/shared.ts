// Helpers shared by the tables of commands: options that many commands have, and parsers of option values.
import { constants } from 'node:os';
import { InvalidArgumentError, type Command } from 'commander';
import { texts } from '../language/language.js';

// Runs a command's action and keeps its exit code.
export type Act = (action: () => Promise<number | void>) => Promise<void>;

export function examples(...lines: string[]): string {
  return ['', texts().help.examples, ...lines.map((line) => `  ${line}`)].join('\n');
}

export function withData(command: Command): Command {
  // An empty value would silently mean another directory: a script's variable may not be set.
  return command.option('--data <dir>', texts().help.data, parseText);
}

export function withJson(command: Command): Command {
  return withData(command).option('--json', texts().help.json);
}

export function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

export function parseExit(value: string): { code: number | null; signal: string | null } {
  const signal = value.toUpperCase().replace(/^(?!SIG)/, 'SIG');
  if (Object.hasOwn(constants.signals, signal)) return { code: null, signal };
  const code = Number(value);
  if (!/^\d+$/.test(value) || code > 255) throw new InvalidArgumentError(texts().help.badExit);
  return { code, signal: null };
}

export function parsePort(value: string): number {
  const port = parseCount(value);
  if (port > 65_535) throw new InvalidArgumentError(texts().help.badPort);
  return port;
}

export function parseCount(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new InvalidArgumentError(texts().help.badCount);
  return Number(value);
}

// For options that must not be 0.
export function parsePositive(value: string): number {
  const count = parseCount(value);
  if (count === 0) throw new InvalidArgumentError(texts().help.badPositive);
  return count;
}

export function parseText(value: string): string {
  if (value === '') throw new InvalidArgumentError(texts().help.empty);
  return value;
}
