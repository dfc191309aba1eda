// parley completion: prints a completion script for a shell, with the commands, their options and the stored runs.
import type { Command } from 'commander';
import { refusal } from '../run/request-error.js';
import type { Io } from './io.js';

interface Known {
  readonly name: string;
  readonly about: string;
  readonly options: readonly string[];
  readonly takesRun: boolean;
}

const SHELLS: Readonly<Record<string, (commands: readonly Known[]) => string>> = { bash, zsh, fish };

export function printCompletion(shell: string, program: Command, io: Io): void {
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (!script) throw refusal('INVALID_ARGUMENT.shell', { shell, shells: Object.keys(SHELLS).join(', ') });
  io.stdout.write(script(describe(program)));
}

// The values of an argument, if they are known.
const WORDS: readonly (readonly [string, readonly string[]])[] = [
  ['engine', ['claude', 'codex', 'codex-app-server', 'gemini', 'opencode', 'iflow', 'rehearsal']],
  ['shell', Object.keys(SHELLS)],
];

function describe(program: Command): Known[] {
  return program.commands
    .filter((command) => !hidden(command))
    .map((command) => ({
      name: command.name(),
      about: command.summary() || command.description(),
      options: [
        ...WORDS.filter(([argument]) => command.registeredArguments.some((each) => each.name() === argument)).flatMap(
          ([, words]) => words,
        ),
        ...command.options
          .flatMap((option) => [option.long ?? '', option.short ?? ''])
          .filter((option) => option !== ''),
      ],
      takesRun: command.registeredArguments.some((argument) => argument.name() === 'run'),
    }));
}

function hidden(command: Command): boolean {
  return (command as unknown as { _hidden?: boolean })._hidden === true;
}

function bash(commands: readonly Known[]): string {
  const cases = commands.map(
    ({ name, options, takesRun }) =>
      `    ${name}) words="${options.join(' ')}${takesRun ? ' last $(parley ls --quiet 2>/dev/null)' : ''}" ;;`,
  );
  return [
    '# parley for bash: eval "$(parley completion bash)"',
    '_parley() {',
    '  local words current="${COMP_WORDS[COMP_CWORD]}"',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(' ')} --help --version" -- "$current"))`,
    '    return',
    '  fi',
    '  case "${COMP_WORDS[1]}" in',
    ...cases,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    'complete -o default -F _parley parley',
    '',
  ].join('\n');
}

function zsh(commands: readonly Known[]): string {
  return [
    '#compdef parley',
    '# parley for zsh: eval "$(parley completion zsh)"',
    '_parley() {',
    '  if (( CURRENT == 2 )); then',
    '    local -a commands',
    `    commands=(${commands.map(({ name, about }) => `'${name}:${quoteZsh(about)}'`).join(' ')})`,
    "    _describe 'command' commands",
    '    return',
    '  fi',
    '  case "$words[2]" in',
    ...commands.map(
      ({ name, options, takesRun }) =>
        `    ${name}) compadd -- ${options.join(' ')}${takesRun ? ' last $(parley ls --quiet 2>/dev/null)' : ''} ;;`,
    ),
    '  esac',
    '  _files',
    '}',
    'compdef _parley parley',
    '',
  ].join('\n');
}

function fish(commands: readonly Known[]): string {
  return [
    '# parley for fish: parley completion fish | source',
    ...commands.flatMap(({ name, about, options, takesRun }) => [
      `complete -c parley -n __fish_use_subcommand -a ${name} -d '${quoteFish(about)}'`,
      ...options.map((option) => `complete -c parley -n '__fish_seen_subcommand_from ${name}' ${fishWord(option)}`),
      ...(takesRun
        ? [`complete -c parley -n '__fish_seen_subcommand_from ${name}' -a 'last (parley ls --quiet 2>/dev/null)'`]
        : []),
    ]),
    '',
  ].join('\n');
}

function quoteZsh(text: string): string {
  return text.replaceAll("'", "'\\''").replaceAll(':', '\\:');
}

function quoteFish(text: string): string {
  return text.replaceAll("'", "\\'");
}

function fishWord(word: string): string {
  if (word.startsWith('--')) return `-l ${word.slice(2)}`;
  return word.startsWith('-') ? `-s ${word.slice(1)}` : `-a ${word}`;
}
