#!/usr/bin/env node
// A stand-in for `codex app-server` (0.166.0): JSON-RPC over stdio, threads under CODEX_HOME, approvals that wait for
// the client. Ends with its stdin, even while a request waits. STAND_IN_RESUME=no: threads are only in memory, and none
// can be resumed.
//
// Directives in the prompt of a turn, [[word argument]], run one after another:
//   say TEXT                         a message, with its pieces
//   reason TEXT                      a thought
//   done JSON                        the message {"done":true,"result":JSON}
//   run COMMAND                      runs it, through /bin/sh in the thread's folder
//   work MS                          runs a command that takes so long
//   approve COMMAND                  asks first: accept and acceptForSession run it, decline continues, cancel ends the
//                                    turn, anything else fails the command and continues
//   approvechanged COMMAND || OTHER  the same, but asked again it asks for OTHER
//   parallel COMMAND | COMMAND       two approvals at once, the second first
//   patch PATH TEXT                  asks whether it may write that text to that file
//   hiddenpatch PATH TEXT            the same, without showing its content
//   hiddenpatch0 PATH TEXT           the same, under the same item id each time
//   permissions                      asks for the network
//   ask TEXT | OPTION | …            calls the client's tool ask_human; ends its turn if instructed, else prints it
//   input TEXT | OPTION | …          asks for user input, and prints the answer
//   form TEXT                        an MCP server's form with `name` (required) and `sure`, and prints the result
//   fickle MS                        like `input`, but continues without an answer after so long
//   oddcall                          calls a tool that no client has
//   hugeform BYTES                   a form with a message of this length
//   form1 TEXT                       the same, with `confirm` (required, yes or no) alone
//   hang                             nothing, until it is interrupted
//   noise N                          N notifications
//   fail TEXT                        the turn fails
//   exit CODE, kill                  the process ends
//   change [COMMAND]                 see below
// A turn without messages replies "Done: " and the beginning of its prompt. If the turn ends early or is interrupted at
// a request, the rest of the script is stored with the thread and runs after the directives of the next prompt. If a
// turn is interrupted while an approval waits, the next one repeats the request first; the word "declined" in its
// prompt drops it, and [[change OTHER]] asks for OTHER instead.
import { readOptions, Refusal } from './arguments.mjs';
import { listen } from './app-server/wire.mjs';
import { handle } from './app-server/methods.mjs';
import { VERSION } from './app-server/thread.mjs';
import { log } from './log.mjs';

const OPTIONS = {
  '-c': ['config', true],
  '--config': ['config', true],
  '--enable': ['enable', true],
  '--disable': ['disable', true],
};
const strict = {
  unknown: (flag) => new Refusal(2, `error: unexpected argument '${flag}' found`),
  missing: (flag) => new Refusal(2, `error: a value is required for '${flag}' but none was supplied`),
};

async function serve(argv) {
  const { words } = readOptions(argv, OPTIONS, strict);
  if (words.join(' ') !== 'app-server')
    throw new Refusal(2, `error: the stand-in only plays \`codex app-server\`, not '${words.join(' ')}'`);
  log({
    engine: 'codex-app-server',
    event: 'start',
    argv,
    cwd: process.cwd(),
    pid: process.pid,
    stdin: null,
    session: null,
    resumed: false,
  });
  process.on('SIGTERM', () => process.exit(0));
  await listen(handle);
}

function answerProbe(words) {
  if (words === '--version') return `codex-cli ${VERSION}`;
  if (words !== 'exec resume --help') return undefined;
  // A word that is not a subcommand is a prompt.
  if (process.env.STAND_IN_RESUME === 'no') return 'Usage: codex exec [OPTIONS] [PROMPT]';
  return 'Usage: codex exec resume [OPTIONS] [SESSION_ID] [PROMPT]';
}

try {
  const argv = process.argv.slice(2);
  const text = answerProbe(argv.join(' '));
  if (text === undefined) await serve(argv);
  else console.log(text);
  process.exit(0);
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  console.error(error.message);
  process.exit(error.code);
}
