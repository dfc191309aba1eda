// Runs the command line: parses the arguments, runs the command, prints refusals and returns the exit code.
import { explainUsage } from './usage-error.js';
import { CommanderError } from 'commander';
import type { RequestErrorCode } from '../contract/error-codes.js';
import type { Values } from '../kernel/fill-template.js';
import { buildProgram } from './build-program.js';
import { EXIT, type Io } from './io.js';
import { chooseLanguage, explainRefusal, texts } from './language/language.js';
import { refusalOf } from './refusal-of.js';

const USAGE: ReadonlySet<RequestErrorCode> = new Set(['INVALID_ARGUMENT', 'UNKNOWN_ENGINE']);

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly values?: Values;
}

export async function runCli(args: readonly string[], io: Io): Promise<number> {
  let code: number = EXIT.ok;
  const json = args.includes('--json');
  await chooseLanguage(args, io);
  const program = buildProgram(io, {
    printErrors: !json,
    act: async (action) => {
      code = (await action()) ?? EXIT.ok;
    },
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    const print = ({ code, message, hint, values }: Failure): void =>
      void io.stderr.write(
        `${JSON.stringify({ error: { code, message, hint, values: hasMembers(values) ? values : undefined } })}\n`,
      );
    if (error instanceof CommanderError) {
      // Help and version exit with 0. Commander has already printed errors for people.
      if (error.exitCode === 0) return EXIT.ok;
      if (json)
        print(
          explainUsage(error.message) ?? { code: 'INVALID_ARGUMENT', message: error.message.replace(/^error: /, '') },
        );
      else io.stderr.write(await hintFor(error, args));
      return EXIT.usage;
    }
    const refusal = refusalOf(error);
    if (!refusal) throw error;
    if (json) print(refusal);
    else {
      // Loaded only now: most commands are not refused.
      const { safeText } = await import('../terminal/safe-text.js');
      const { message, hint } = explainRefusal(refusal);
      io.stderr.write(`parley: ${safeText(message)}\n${hint === undefined ? '' : `  ${hint}\n`}`);
    }
    return USAGE.has(refusal.code) ? EXIT.usage : EXIT.failed;
  }
}

// Suggests a correction for the two most common mistakes of newcomers.
async function hintFor({ code }: CommanderError, [command = '']: readonly string[]): Promise<string> {
  if (code === 'commander.excessArguments' && command === 'run') return `${texts().help.quotePrompt}\n`;
  if (code !== 'commander.unknownCommand') return '';
  const { ENGINES } = await import('../engines/registry.js');
  return ENGINES.some(({ name }) => name === command) ? `${texts().help.didYouMean(`parley run ${command}`)}\n` : '';
}

function hasMembers(values: Values | undefined): boolean {
  return values !== undefined && Object.keys(values).length > 0;
}
