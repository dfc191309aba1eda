// The commands that check runs and parse recorded output.
import { Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { examples, parseExit, parseText, withJson, type Act } from './shared.js';

export function addProofCommands(program: Command, io: Io, act: Act): void {
  withJson(program.command('verify'))
    .summary('prove that nothing was changed')
    .description(
      'Check a stored run: digest, order, form, hashes of the logs, the cover of every byte, the conversation rebuilt.',
    )
    .argument('[run]', 'its id, a part of it, or last')
    .option('--all', 'every run, with a summary at the end')
    .action((run, options) => act(async () => (await import('../reading/audit.js')).verifyCommand(run, options, io)));

  withJson(program.command('replay'))
    .summary('rebuild the conversation')
    .description('Rebuild the conversation from what was observed, and compare it with the stored one.')
    .argument('<run>', 'its id, a part of it, or last')
    .option('--print', 'print the rebuilt events')
    .action((run, options) => act(async () => (await import('../reading/audit.js')).replayCommand(run, options, io)));

  program
    .command('parse')
    .summary("read an engine's recorded output")
    .description("Turn an engine's recorded output into events: stdout comes by stdin, one JSON event a line goes out.")
    .option(
      '-e, --engine <name>',
      'who printed it: codex, codex-app-server, gemini, iflow, opencode or rehearsal (required)',
    )
    .option('--stderr <file>', "the engine's stderr, if it was recorded")
    .addOption(
      new Option('--exit <code>', 'how the process ended: an exit code or a signal name')
        .argParser(parseExit)
        .default({ code: 0, signal: null }, '0'),
    )
    .addOption(
      new Option('--mode <mode>', 'judge as an interactive or an auto run')
        .choices(['interactive', 'auto'])
        .default('interactive'),
    )
    .option('--resumed-from <session>', 'the session id that the turn was to continue', parseText)
    .addOption(new Option('--prompt <text>', 'the prompt of the turn, shown as the first message').default('', 'none'))
    .option('--fcmp', 'print the conversation (FCMP) instead of what was observed (RASP)')
    .addOption(new Option('--stats', "print the parser's counts and the judgement instead of events").conflicts('fcmp'))
    .option('--reproducible', 'fixed times and ids: the same input gives the same bytes')
    .addHelpText(
      'after',
      examples(
        'codex exec --json "say hello" </dev/null >out.log 2>err.log; code=$?',
        'parley parse --engine codex --stderr err.log --exit $code < out.log',
        'parley parse --engine codex --stderr err.log --exit $code --fcmp < out.log',
        'parley parse --engine codex --stats < out.log',
      ),
    )
    .action((options) => act(async () => (await import('../reading/parse.js')).parseRecording(options, io)));
}
