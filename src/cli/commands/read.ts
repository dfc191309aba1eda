// The commands that show runs.
import { Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { texts } from '../language/language.js';
import { parseCount, parsePositive, withData, withJson, type Act } from './shared.js';

export function addReadCommands(program: Command, io: Io, act: Act): void {
  const { help: t } = texts();
  withJson(program.command('ls'))
    .summary(t.ls.summary)
    .description(t.ls.description)
    .option('--status <status>', t.ls.status)
    .option('--engine <name>', t.ls.engine)
    .option('--label <name=value>', t.ls.label)
    .addOption(new Option('-n, --limit <count>', t.ls.limit).argParser(parsePositive).default(50))
    .option('-q, --quiet', t.ls.quiet)
    .action((options) => act(async () => (await import('../reading/list.js')).listCommand(options, io)));

  withJson(program.command('inbox'))
    .summary(t.inbox.summary)
    .description(t.inbox.description)
    .argument('[number]', t.inbox.number, parseCount)
    .addOption(new Option('-n, --limit <count>', t.inbox.limit).argParser(parsePositive).default(50))
    .action((place, options) =>
      act(async () => (await import('../conversation/inbox.js')).inboxCommand(place, options, io)),
    );

  withJson(program.command('show'))
    .summary(t.show.summary)
    .description(t.show.description)
    .argument('<run>', t.show.run)
    .option('--details', t.show.details)
    .action((run, options) => act(async () => (await import('../reading/show.js')).showCommand(run, options, io)));

  withJson(program.command('watch'))
    .summary(t.watch.summary)
    .description(t.watch.description)
    .argument('<run>', t.watch.run)
    .addOption(new Option('--cursor <seq>', t.watch.cursor).argParser(parseCount).default(0))
    .option('--rasp', t.watch.rasp)
    .option('--no-follow', t.watch.noFollow)
    .action((run, options) => act(async () => (await import('../reading/show.js')).watchCommand(run, options, io)));

  withData(program.command('logs'))
    .summary(t.logs.summary)
    .description(t.logs.description)
    .argument('<run>', t.logs.run)
    .option('--event <seq>', t.logs.event, parseCount)
    .option('--turn <number>', t.logs.turn, parseCount)
    // The earlier name of --turn.
    .addOption(new Option('--attempt <number>').argParser(parseCount).hideHelp())
    .addOption(new Option('--stream <name>', t.logs.stream).choices(['stdout', 'stderr']).default('stdout'))
    .option('--from <byte>', t.logs.from, parseCount)
    .option('--to <byte>', t.logs.to, parseCount)
    .option('--raw', t.logs.raw)
    .action((run, options) => act(async () => (await import('../reading/audit.js')).logsCommand(run, options, io)));
}
