// The commands that show runs.
import { Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { parseCount, parsePositive, withData, withJson, type Act } from './shared.js';

export function addReadCommands(program: Command, io: Io, act: Act): void {
  withJson(program.command('ls'))
    .summary('list runs')
    .description('List runs, newest first.')
    .option('--status <status>', 'queued, running, waiting_user, succeeded, failed or canceled')
    .option('--engine <name>', 'only those of an engine')
    .option('--label <name=value>', 'only those with a label')
    .addOption(new Option('-n, --limit <count>', 'how many').argParser(parsePositive).default(50))
    .option('-q, --quiet', 'only the ids')
    .action((options) => act(async () => (await import('../reading/list.js')).listCommand(options, io)));

  withJson(program.command('inbox'))
    .summary('answer what waits for you')
    .description('List the questions that wait for you, oldest first. In a terminal, type a number to answer one.')
    .argument('[number]', 'answer this one at once', parseCount)
    .addOption(new Option('-n, --limit <count>', 'how many').argParser(parsePositive).default(50))
    .action((place, options) =>
      act(async () => (await import('../conversation/inbox.js')).inboxCommand(place, options, io)),
    );

  withJson(program.command('show'))
    .summary('show a run')
    .description('Show a run: what it is, and its conversation so far.')
    .argument('<run>', 'its id, a part of it, or last')
    .option('--details', "with the engine's own output and warnings, line by line")
    .action((run, options) => act(async () => (await import('../reading/show.js')).showCommand(run, options, io)));

  withJson(program.command('watch'))
    .summary('watch a run')
    .description('Watch a run from any point until it has ended. Ctrl-C only ends the watching.')
    .argument('<run>', 'its id, a part of it, or last')
    .addOption(new Option('--cursor <seq>', 'begin after this event').argParser(parseCount).default(0))
    .option('--rasp', 'what was observed (RASP) instead of the conversation, as JSON lines')
    .option('--no-follow', 'only what is stored now')
    .action((run, options) => act(async () => (await import('../reading/show.js')).watchCommand(run, options, io)));

  withData(program.command('logs'))
    .summary("the engine's own bytes")
    .description(
      [
        "Print the engine's output of one event, of a range of bytes, or of a whole turn.",
        'On a terminal, control and invisible characters are shown by name; a pipe gets the bytes.',
      ].join(' '),
    )
    .argument('<run>', 'its id, a part of it, or last')
    .option('--event <seq>', 'the bytes that an observed event was made from', parseCount)
    .option('--attempt <number>', 'of this turn (default: the last)', parseCount)
    .addOption(new Option('--stream <name>', 'which stream').choices(['stdout', 'stderr']).default('stdout'))
    .option('--from <byte>', 'from this byte on', parseCount)
    .option('--to <byte>', 'up to this byte, without it', parseCount)
    .option('--raw', 'write the bytes themselves, also to a terminal, which obeys them')
    .action((run, options) => act(async () => (await import('../reading/audit.js')).logsCommand(run, options, io)));
}
