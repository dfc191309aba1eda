// The commands that manage who may use the server.
import { Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { withData, type Act } from './shared.js';

export function addAccessCommands(program: Command, io: Io, act: Act): void {
  const token = program.command('token').summary('who may use the server').description('Tokens for other people and programs. What they allow: viewer looks, replier answers too, operator does everything.');
  withData(token.command('add')).description('Make a token; it is printed once.').argument('<name>', 'whose it is: it stands in what is recorded')
    .addOption(new Option('--role <role>', 'what it allows').choices(['viewer', 'replier', 'operator']).default('replier'))
    .action((name, options) => act(async () => (await import('../token.js')).addTokenCommand(name, options, io)));
  withData(token.command('ls')).description('List the tokens, without what they are.').action((options) => act(async () => (await import('../token.js')).listTokensCommand(options, io)));
  withData(token.command('rm')).description('Take a token back; it counts for nothing from then on.').argument('<name>', 'its name')
    .action((name, options) => act(async () => (await import('../token.js')).removeTokenCommand(name, options, io)));
}
