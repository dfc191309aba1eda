// The commands that manage who may use the server.
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { examples, parseCount, parsePositive, parseText, withData, withJson, type Act } from './shared.js';

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };
const LONGEST_MS = 10 * 366 * 86_400_000;
const LONGEST_CODE_MS = 86_400_000;
const SHORTEST_CODE_MS = 10_000;

export function addAccessCommands(program: Command, io: Io, act: Act): void {
  const token = program
    .command('token')
    .summary('manage access tokens')
    .description(
      'Manage the tokens of people and programs, and signed-in browsers. ' +
        'Roles: viewer reads, replier also answers, operator does everything.',
    );
  withData(token.command('add'))
    .description('Create a token. It is printed once.')
    .argument('<name>', 'its name')
    .addOption(
      new Option('--role <role>', 'what it allows').choices(['viewer', 'replier', 'operator']).default('replier'),
    )
    .option(
      '--person <person>',
      'whose it is, for journals (default: its name); one person may have several',
      parseText,
    )
    .option('--expires <time>', 'how long it is valid, such as 90d or 12h (default: no limit)', parseDuration)
    .action((name, options) =>
      act(async () => (await import('../administration/token.js')).addTokenCommand(name, options, io)),
    );
  withJson(token.command('ls'))
    .description('List tokens with their expiry and last use, without their values.')
    .action((options) => act(async () => (await import('../administration/token.js')).listTokensCommand(options, io)));
  withData(token.command('rotate'))
    .description(
      'Replace the value of a token. The old value and its sessions end at once; a server need not be restarted.',
    )
    .argument('[name]', 'its name')
    .option('--operator', 'the operator token')
    .option('--expires <time>', 'how long the new value is valid (default: as before)', parseDuration)
    .action((name, options) =>
      act(async () => (await import('../administration/token.js')).rotateTokenCommand(name, options, io)),
    );
  withData(token.command('rm'))
    .description('Revoke a token immediately. Its sessions end with it.')
    .argument('<name>', 'its name')
    .action((name, options) =>
      act(async () => (await import('../administration/token.js')).removeTokenCommand(name, options, io)),
    );
  withJson(token.command('sessions'))
    .description('List the browsers that are signed in, or sign one out.')
    .option('--end <session>', 'end this session', parseText)
    .action((options) =>
      act(async () => (await import('../administration/token-sessions.js')).sessionsCommand(options, io)),
    );

  withJson(program.command('link'))
    .summary('sign a browser or phone in')
    .description('Print a link that signs one browser in, once, and in a terminal its QR code. Needs a running server.')
    .option('--as <token>', 'sign in with this named token (default: as the operator)', parseText)
    .option('--expires <time>', 'how long the link may be used, 10s to 24h (default: 10m)', parseCodeDuration)
    .addHelpText('after', examples('parley link', 'parley link --as anna --expires 1h'))
    .action((options) => act(async () => (await import('../serving/link.js')).linkCommand(options, io)));

  withJson(program.command('audit'))
    .summary('read the administrative journal')
    .description(
      'Show sign-ins, token changes, deletions, settings changes and downloads; or check that no row was altered.',
    )
    .addOption(new Option('-n, --limit <count>', 'how many of the newest rows').argParser(parsePositive).default(50))
    .option('--all', 'every row')
    .option('--after <seq>', 'rows after this one', parseCount)
    .option('--verify', 'check that no row was changed, removed or reordered')
    .action((options) => act(async () => (await import('../administration/admin-audit.js')).auditCommand(options, io)));

  const webhook = program.command('webhook').summary('test a webhook').description('Test the webhooks of config.json.');
  withJson(webhook.command('test'))
    .description('Send a signed test delivery to a webhook and report what came of it.')
    .argument('<name>', 'its name in config.json')
    .action((name, options) =>
      act(async () => (await import('../administration/webhook.js')).testWebhookCommand(name, options, io)),
    );
}

function parseDuration(value: string): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhdw])$/.exec(value) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? 0);
  if (!(ms > 0) || ms > LONGEST_MS)
    throw new InvalidArgumentError('Give a number and a unit: s, m, h, d or w; for instance 90d. At most ten years.');
  return ms;
}

function parseCodeDuration(value: string): number {
  const ms = parseDuration(value);
  if (ms < SHORTEST_CODE_MS || ms > LONGEST_CODE_MS) throw new InvalidArgumentError('Give a time from 10s to 24h.');
  return ms;
}
