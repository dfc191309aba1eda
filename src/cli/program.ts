// The command line: which commands there are. Each lives in a file of its own, loaded only when it is called.
import { constants } from 'node:os';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { RequestError } from '../run/request-error.js';
import { EXIT, type Io } from './io.js';
import { readVersion } from './version.js';

export async function runCli(args: readonly string[], io: Io): Promise<number> {
  const program = buildProgram(io);
  try {
    await program.parseAsync(args, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    // Help and version are answers, not mistakes; commander has printed everything by now.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (error instanceof RequestError) {
      io.stderr.write(`parley: ${error.message}\n`);
      return EXIT.usage;
    }
    throw error;
  }
}

function buildProgram(io: Io): Command {
  const program = new Command('parley')
    .description('Coding agents as durable conversations: no question is lost, no answer is applied twice, no byte disappears.')
    .version(readVersion(), '-V, --version')
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => io.stderr.write(text) })
    .exitOverride();

  program
    .command('parse')
    .description("Turn an engine's recorded output into events: stdout comes by stdin, one JSON event a line goes out.")
    .option('-e, --engine <name>', 'who printed it: codex, gemini, iflow, opencode or rehearsal (required)')
    .option('--stderr <file>', "the engine's stderr, if it was recorded")
    .addOption(new Option('--exit <code>', 'how the process ended: an exit code or a signal name').argParser(parseExit).default({ code: 0, signal: null }, '0'))
    .addOption(new Option('--mode <mode>', 'judge as an interactive or an auto run').choices(['interactive', 'auto']).default('interactive'))
    .option('--resumed-from <session>', 'the session id that the turn was to continue', parseText)
    .addOption(new Option('--prompt <text>', 'the prompt of the turn, shown as the first message').default('', 'none'))
    .option('--fcmp', 'print the conversation (FCMP) instead of what was observed (RASP)')
    .addOption(new Option('--stats', "print the parser's counts and the judgement instead of events").conflicts('fcmp'))
    .option('--reproducible', 'fixed times and ids: the same input gives the same bytes')
    .addHelpText('after', [
      '',
      'Examples:',
      '  codex exec --json "say hello" </dev/null >out.log 2>err.log; code=$?',
      '  parley parse --engine codex --stderr err.log --exit $code < out.log',
      '  parley parse --engine codex --stderr err.log --exit $code --fcmp < out.log',
      '  parley parse --engine codex --stats < out.log',
    ].join('\n'))
    .action(async (options) => (await import('./parse.js')).parseRecording(options, io));

  program
    .command('contract')
    .description('Print the chart of a run as JSON: states, events and edges with their guards.')
    .option('--sticky', 'with the opt-in edge for engines that stay resident')
    .action(async (options) => (await import('./contract.js')).printContract(options, io));

  program
    .command('demo')
    .description('Show on a recorded turn how bytes become events, a conversation and a judgement.')
    .action(async () => (await import('./demo.js')).runDemo(io));

  for (const command of program.commands) {
    // Subcommands write and end the way the program does.
    command.copyInheritedSettings(program);
    command.showHelpAfterError(`(parley ${command.name()} --help tells more)`);
  }
  program.showHelpAfterError('(parley --help tells more)');
  return program;
}

function parseExit(value: string): { code: number | null; signal: string | null } {
  const signal = value.toUpperCase().replace(/^(?!SIG)/, 'SIG');
  if (Object.hasOwn(constants.signals, signal)) return { code: null, signal };
  const code = Number(value);
  if (!/^\d+$/.test(value) || code > 255) throw new InvalidArgumentError('Give an exit code from 0 to 255, or a signal name such as SIGTERM.');
  return { code, signal: null };
}

function parseText(value: string): string {
  if (value === '') throw new InvalidArgumentError('It must not be empty.');
  return value;
}
