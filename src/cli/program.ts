// The command line: which commands there are. Each lives in a file of its own, loaded only when it is called.
import { Command, CommanderError } from 'commander';
import type { RequestErrorCode } from '../contract/error-codes.js';
import { addAccessCommands } from './commands/access.js';
import { addOtherCommands } from './commands/other.js';
import { addProofCommands } from './commands/proof.js';
import { addReadCommands } from './commands/read.js';
import { addRunCommands } from './commands/run.js';
import { examples, type Act } from './commands/shared.js';
import { EXIT, type Io } from './io.js';
import { refusalOf } from './refusal-of.js';
import { readVersion } from './version.js';

// What the caller can do about it, where the message alone does not say.
const ADVICE: Partial<Record<RequestErrorCode, string>> = {
  DATA_DIR_IN_USE:
    'ls, show and watch work meanwhile; try again when it is done, or choose another directory with --data',
  DATA_DIR_UNUSABLE: 'parley doctor tells more; another directory is chosen with --data or PARLEY_DATA',
  DATABASE_TOO_NEW: 'nothing was touched: use the Parley that wrote it, or another directory with --data',
  RUN_NOT_ENDED: 'parley reply answers it if it waits, parley cancel ends it',
  UNKNOWN_ENGINE: 'parley doctor tells which of them are installed',
};
const USAGE: ReadonlySet<RequestErrorCode> = new Set(['INVALID_ARGUMENT', 'UNKNOWN_ENGINE']);

export async function runCli(args: readonly string[], io: Io): Promise<number> {
  let code: number = EXIT.ok;
  const json = args.includes('--json');
  const program = buildProgram(io, json, async (action) => {
    code = (await action()) ?? EXIT.ok;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    const tell = (failure: { readonly code: string; readonly message: string }): void =>
      void io.stderr.write(`${JSON.stringify({ error: { code: failure.code, message: failure.message } })}\n`);
    if (error instanceof CommanderError) {
      // Help and version are answers, not mistakes. For people, commander has printed everything by now.
      if (error.exitCode === 0) return EXIT.ok;
      if (json) tell({ code: 'INVALID_ARGUMENT', message: error.message.replace(/^error: /, '') });
      else io.stderr.write(await hintFor(error, args));
      return EXIT.usage;
    }
    const refusal = refusalOf(error);
    if (!refusal) throw error;
    if (json) tell(refusal);
    else {
      // Loaded only now: most commands are not refused.
      const { safeText } = await import('../terminal/safe-text.js');
      const advice = ADVICE[refusal.code];
      io.stderr.write(`parley: ${safeText(refusal.message)}\n${advice === undefined ? '' : `  ${advice}\n`}`);
    }
    return USAGE.has(refusal.code) ? EXIT.usage : EXIT.failed;
  }
}

// What newcomers most often mean by a line that does not parse.
async function hintFor({ code }: CommanderError, [command = '']: readonly string[]): Promise<string> {
  if (code === 'commander.excessArguments' && command === 'run')
    return '(the prompt is one argument: put it in quotes)\n';
  if (code !== 'commander.unknownCommand') return '';
  const { ENGINES } = await import('../engines/registry.js');
  return ENGINES.some(({ name }) => name === command) ? `(Did you mean parley run ${command}?)\n` : '';
}

function buildProgram(io: Io, json: boolean, act: Act): Command {
  const program = new Command('parley')
    .description(
      'Coding agents as durable conversations: no question is lost, no answer is applied twice, no byte disappears.',
    )
    .version(readVersion(), '-V, --version')
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => !json && io.stderr.write(text) })
    .exitOverride();
  addRunCommands(program, io, act);
  addReadCommands(program, io, act);
  addProofCommands(program, io, act);
  addOtherCommands(program, io, act);
  addAccessCommands(program, io, act);
  for (const command of program.commands) {
    // Subcommands write and end the way the program does.
    command.copyInheritedSettings(program);
    command.showHelpAfterError(`(parley ${command.name()} --help tells more)`);
  }
  return program
    .showHelpAfterError('(parley --help tells more)')
    .addHelpText(
      'after',
      examples(
        'parley demo                                      the promise, shown in ten seconds',
        'parley run rehearsal "Set up the storage"        a scripted agent that asks, without any account',
        'parley run codex "Why does the build fail?"      in this folder, with the Codex you have',
        'parley inbox                                     what waits for you; answer by number',
        'parley reply last 2                              answers with the second option',
      ) +
        '\n\nExit codes: 0 succeeded, 1 failed, 2 usage, 3 waiting for an answer, 4 canceled, 130 interrupted ' +
        '(the run goes on).',
    );
}
