// The commands that check runs and parse recorded output.
import { Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { texts } from '../language/language.js';
import { examples, parseExit, parseText, withJson, type Act } from './shared.js';

export function addProofCommands(program: Command, io: Io, act: Act): void {
  const { help: t } = texts();
  withJson(program.command('verify'))
    .summary(t.verify.summary)
    .description(t.verify.description)
    .argument('[run]', t.verify.run)
    .option('--all', t.verify.all)
    .action((run, options) => act(async () => (await import('../reading/audit.js')).verifyCommand(run, options, io)));

  withJson(program.command('replay'))
    .summary(t.replay.summary)
    .description(t.replay.description)
    .argument('<run>', t.replay.run)
    .option('--print', t.replay.print)
    .action((run, options) => act(async () => (await import('../reading/audit.js')).replayCommand(run, options, io)));

  program
    .command('parse')
    .summary(t.parse.summary)
    .description(t.parse.description)
    .option('-e, --engine <name>', t.parse.engine)
    .option('--stderr <file>', t.parse.stderr)
    .addOption(new Option('--exit <code>', t.parse.exit).argParser(parseExit).default({ code: 0, signal: null }, '0'))
    .addOption(new Option('--mode <mode>', t.parse.mode).choices(['interactive', 'auto']).default('interactive'))
    .option('--resumed-from <session>', t.parse.resumedFrom, parseText)
    .addOption(new Option('--prompt <text>', t.parse.prompt).default('', t.parse.noPrompt))
    .option('--fcmp', t.parse.fcmp)
    .addOption(new Option('--stats', t.parse.stats).conflicts('fcmp'))
    .option('--reproducible', t.parse.reproducible)
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
