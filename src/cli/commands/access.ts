// The commands that manage who may use the server.
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { Io } from '../io.js';
import { texts } from '../language/language.js';
import { examples, parseCount, parsePositive, parseText, withData, withJson, type Act } from './shared.js';

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };
const LONGEST_MS = 10 * 366 * 86_400_000;
const LONGEST_CODE_MS = 86_400_000;
const SHORTEST_CODE_MS = 10_000;

export function addAccessCommands(program: Command, io: Io, act: Act): void {
  const { help: t } = texts();
  const token = program.command('token').summary(t.token.summary).description(t.token.description);
  withData(token.command('add'))
    .description(t.token.add)
    .argument('<name>', t.token.name)
    .addOption(new Option('--role <role>', t.token.role).choices(['viewer', 'replier', 'operator']).default('replier'))
    .option('--person <person>', t.token.person, parseText)
    .option('--expires <time>', t.token.expires, parseDuration)
    .action((name, options) =>
      act(async () => (await import('../administration/token.js')).addTokenCommand(name, options, io)),
    );
  withJson(token.command('ls'))
    .description(t.token.ls)
    .action((options) => act(async () => (await import('../administration/token.js')).listTokensCommand(options, io)));
  withData(token.command('rotate'))
    .description(t.token.rotate)
    .argument('[name]', t.token.name)
    .option('--operator', t.token.operator)
    .option('--expires <time>', t.token.rotateExpires, parseDuration)
    .action((name, options) =>
      act(async () => (await import('../administration/token.js')).rotateTokenCommand(name, options, io)),
    );
  withData(token.command('rm'))
    .description(t.token.rm)
    .argument('<name>', t.token.name)
    .action((name, options) =>
      act(async () => (await import('../administration/token.js')).removeTokenCommand(name, options, io)),
    );
  withJson(token.command('sessions'))
    .description(t.token.sessions)
    .option('--end <session>', t.token.end, parseText)
    .action((options) =>
      act(async () => (await import('../administration/token-sessions.js')).sessionsCommand(options, io)),
    );

  withJson(program.command('link'))
    .summary(t.link.summary)
    .description(t.link.description)
    .option('--as <token>', t.link.as, parseText)
    .option('--expires <time>', t.link.expires, parseCodeDuration)
    .addHelpText('after', examples('parley link', 'parley link --as anna --expires 1h'))
    .action((options) => act(async () => (await import('../serving/link.js')).linkCommand(options, io)));

  withJson(program.command('audit'))
    .summary(t.audit.summary)
    .description(t.audit.description)
    .addOption(new Option('-n, --limit <count>', t.audit.limit).argParser(parsePositive).default(50))
    .option('--all', t.audit.all)
    .option('--after <seq>', t.audit.after, parseCount)
    .option('--verify', t.audit.verify)
    .action((options) => act(async () => (await import('../administration/admin-audit.js')).auditCommand(options, io)));

  const webhook = program.command('webhook').summary(t.webhook.summary).description(t.webhook.description);
  withJson(webhook.command('test'))
    .description(t.webhook.test)
    .argument('<name>', t.webhook.name)
    .action((name, options) =>
      act(async () => (await import('../administration/webhook.js')).testWebhookCommand(name, options, io)),
    );
}

function parseDuration(value: string): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhdw])$/.exec(value) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? 0);
  if (!(ms > 0) || ms > LONGEST_MS) throw new InvalidArgumentError(texts().help.badDuration);
  return ms;
}

function parseCodeDuration(value: string): number {
  const ms = parseDuration(value);
  if (ms < SHORTEST_CODE_MS || ms > LONGEST_CODE_MS) throw new InvalidArgumentError(texts().help.badLinkDuration);
  return ms;
}
