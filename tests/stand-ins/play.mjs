// Runs one turn of a stand-in: arguments, record of the start, prompt, session, then step by step in the engine's
// format. The parts of a single engine (its arguments, its sessions, its dialect) are in its own file; this one knows
// none of them.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseDirectives } from '../../dist/rehearsal/directives.js';
import { Refusal } from './arguments.mjs';
import { log } from './log.mjs';
import { complain, write } from './output.mjs';
import { leaveOrphan } from './shell.mjs';

const LOGGED_CHARS = 200;
// Multi-byte and combining characters, a line separator, an emoji of several code points.
const UTF8_TEXT = 'Grüße 漢字 e\u0301 a\u2028b 👩‍👩‍👧 🚀';

export async function play(engine) {
  const argv = process.argv.slice(2);
  if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-v')) {
    await write(process.stdout, `${engine.version}\n`);
    return;
  }
  if (argv.join(' ') === engine.help.asked) {
    await write(process.stdout, `${engine.help.text}\n`);
    return;
  }
  try {
    process.exitCode = await playTurn(engine, argv);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    await complain(error.message);
    process.exitCode = error.code;
  }
  // A guard or a timer must not keep the process alive.
  process.exit();
}

async function playTurn(engine, argv) {
  const call = readCall(engine, argv);
  const record = (stdin) => recordStart(engine, argv, { session: call.session, resumed: call.resumed, stdin });
  const prompt = await readPrompt(call, record);
  // May refuse: a session that does not exist.
  let session = await engine.openSession(call);
  // The directives of this prompt precede those from an earlier one.
  const script = [
    ...parseDirectives(prompt).map((step) => ({ step, kept: false })),
    ...session.kept.map((step) => ({ step, kept: true })),
  ];
  const ahead = script.slice(0, endOfTurn(script));

  const refusal = ahead.find(({ step }) => step.type === 'refuse');
  if (call.resumed && refusal) {
    if (refusal.kept) session.keep(session.kept.filter((step) => step !== refusal.step));
    throw engine.sessionNotFound(call);
  }
  const continued = session;
  if (call.resumed && has(ahead, 'othersession')) session = engine.createSession({ ...call, session: engine.newId() });
  session.append({ type: 'user', text: prompt });
  const voice = engine.createVoice({ call, prompt, session, sessionId: has(ahead, 'nosession') ? null : session.id });
  await voice.begin();
  return playScript(script, { voice, prompt, session, continued });
}

async function playScript(script, { voice, prompt, session, continued }) {
  let spoke = false;
  const say = (text) => {
    spoke = true;
    session.append({ type: 'assistant', text });
    return voice.say(text);
  };
  for (const [index, { step, kept }] of script.entries()) {
    const rest = script.slice(index + 1);
    // Removed before it runs: if this step kills the process, the next turn continues behind it.
    if (kept) continued.keep(rest.filter((entry) => entry.kept).map((entry) => entry.step));
    switch (step.type) {
      case 'answer':
        await say(step.text);
        break;
      case 'done':
        await say(JSON.stringify({ done: true, result: step.result }));
        break;
      case 'utf8':
        await say(UTF8_TEXT);
        // Invalid UTF-8, on a line of its own.
        await write(process.stderr, Buffer.from([0xff, 0x0a]));
        break;
      case 'orphan':
        await say(`I left process ${leaveOrphan()} running.`);
        break;
      case 'ask':
        session.keep(rest.map((entry) => entry.step));
        await voice.ask({ prompt: step.question, options: step.options });
        return voice.end();
      case 'tool':
        if ((await voice.tool(step.command)) === 'stopped') return 0;
        break;
      case 'file':
        if ((await voice.file(step.name)) === 'stopped') return 0;
        break;
      case 'events':
        spoke = true;
        await voice.events(step.count, step.bytes);
        break;
      case 'stderr':
        for (let line = 1; line <= step.lines; line += 1) await complain(`stand-in: line ${line} of ${step.lines}`);
        break;
      case 'sleep':
        await sleep(step.ms);
        break;
      case 'hang':
        await forever();
        break;
      case 'crash':
        process.kill(process.pid, 'SIGKILL');
        await forever();
        break;
      case 'fail':
        return voice.fail();
      case 'exit0':
        return 0;
      default:
        // nosession, othersession and refuse concern the turn as a whole; without a terminal no CLI asks for an
        // approval.
        break;
    }
  }
  if (!spoke) await say(`${script.length === 0 ? `You said: ${prompt}` : 'Done.'}\nEarlier turns: ${session.turns}.`);
  return voice.end();
}

// The steps of this turn end with its first question; the rest belongs to the next.
function endOfTurn(script) {
  const ask = script.findIndex(({ step }) => step.type === 'ask');
  return ask < 0 ? script.length : ask;
}

function has(script, type) {
  return script.some(({ step }) => step.type === type);
}

function forever() {
  return new Promise(() => {
    setInterval(() => {}, 1 << 30);
  });
}

function readCall(engine, argv) {
  try {
    return engine.readArguments(argv);
  } catch (error) {
    if (error instanceof Refusal) recordStart(engine, argv, { session: null, resumed: false, stdin: null });
    throw error;
  }
}

// Records the start before anything else; if the prompt comes on stdin, as soon as its beginning is known. A stdin that
// is read but is not the prompt may stay open forever, so it is not awaited.
async function readPrompt(call, record) {
  if (call.stdin !== 'prompt') record(null);
  for (const line of call.greeting ?? []) await complain(line);
  if (call.stdin === 'unread') return call.toPrompt('');
  let text = '';
  let recorded = call.stdin !== 'prompt';
  process.stdin.setEncoding('utf8');
  const patience =
    call.firstByteMs === undefined ? undefined : setTimeout(() => process.stdin.destroy(), call.firstByteMs);
  try {
    for await (const chunk of process.stdin) {
      clearTimeout(patience);
      text += chunk;
      if (recorded || text.length < LOGGED_CHARS) continue;
      record(text.slice(0, LOGGED_CHARS));
      recorded = true;
    }
  } catch (error) {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
  clearTimeout(patience);
  if (!recorded) record(text);
  return call.toPrompt(text);
}

function recordStart(engine, argv, { stdin, session, resumed }) {
  log({ engine: engine.name, argv, cwd: process.cwd(), pid: process.pid, stdin, session, resumed });
}
