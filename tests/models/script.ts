// The next step of a scripted model. The prompts of a conversation are its script, in the directives of the stand-ins
// and a few more about the service. The position is computed from the conversation alone, so a model stores nothing and
// continues in any process, after any resume. Total: any text that is not a directive is plain text.
import { parseDirectives, type Step } from '../../src/rehearsal/directives.js';

// Of the directives of the stand-ins, [[crash]] drops the connection before a response, [[fail]] declines to respond,
// and [[hang]] sends no response. [[http]], [[html]], [[crash]], [[empty]] and [[fail]] are a whole response: its other
// messages are not sent. [[approve]] is a command that asks for permission, if the CLI supports it. Directives about
// the CLI itself (stderr, exit0, nosession, othersession, refuse, orphan) are ignored.
type ServiceStep =
  // [[http STATUS]], or [[http STATUS MS]]: the client should retry after so many milliseconds.
  | { readonly type: 'http'; readonly status: number; readonly retryMs: number | undefined }
  // [[slow MS]]: sends small pieces from here on, with this pause.
  | { readonly type: 'slow'; readonly ms: number }
  // [[huge BYTES]]: one message of this size.
  | { readonly type: 'huge'; readonly bytes: number }
  // [[patch PATH]]: creates a file anywhere.
  | { readonly type: 'patch'; readonly path: string }
  // [[call NAME]]: calls a tool of that name without arguments; reports a tool that was not offered.
  | { readonly type: 'call'; readonly name: string }
  // [[beside]]: the next call is made in the same response as the previous one.
  | { readonly type: 'beside' }
  // The connection dropped during a response, a response without content, a page of HTML with status 200, a line that
  // is not JSON.
  | { readonly type: 'cut' | 'empty' | 'html' | 'badsse' };
export type ModelStep = Step | ServiceStep;

// A conversation as the model receives it, in order. Leaves out additions of the CLI and the results of tools, except
// for two: `answered`, the result of a question whose call lasts until its answer, and `lost`, the result of an
// interrupted call.
export type Entry =
  | { readonly type: 'user'; readonly text: string }
  | { readonly type: 'said' | 'called' | 'answered' | 'lost' };

// One response: its messages, and the step that ends it (none: the turn has ended).
export interface Move {
  readonly says: readonly ModelStep[];
  readonly end: ModelStep | undefined;
  // Calls in the same response.
  readonly beside: readonly ModelStep[];
}

interface Line {
  readonly step: ModelStep;
  // It was behind a question that was asked, so it outlives the turn.
  readonly kept: boolean;
}

const SERVICE_WORDS = [
  /(http) ([1-5]\d\d)(?: (\d{1,9}))?/,
  /(slow|huge) (\d{1,9})/,
  /(patch) (\/[^\s\]]+)/,
  /(call) (\w+)/,
  /(cut|empty|html|badsse|beside)/,
];
const SERVICE_WORD = new RegExp(`\\[\\[(?:${SERVICE_WORDS.map(({ source }) => source).join('|')})\\]\\]`, 'g');
const CALLS = new Set(['tool', 'approve', 'file', 'patch', 'call', 'ask']);
const FAILURES = new Set(['fail', 'crash', 'hang', 'http', 'cut', 'empty', 'html', 'badsse']);
// The text that Parley sends to an agent whose request for permission was decided after its process had exited.
const DECIDED = /^The person (approved|declined) this action: /;
const SPEECH = new Set(['answer', 'done', 'utf8', 'events', 'huge']);

export function parseScript(prompt: string): ModelStep[] {
  const steps: ModelStep[] = [];
  let from = 0;
  for (const match of prompt.matchAll(SERVICE_WORD)) {
    steps.push(...parseDirectives(prompt.slice(from, match.index)), toServiceStep(match));
    from = match.index + match[0].length;
  }
  return [...steps, ...parseDirectives(prompt.slice(from))];
}

function toServiceStep([
  ,
  http,
  status,
  retryMs,
  counted,
  count,
  patch,
  path = '',
  call,
  name = '',
  bare,
]: RegExpMatchArray): ServiceStep {
  if (http)
    return { type: 'http', status: Number(status), retryMs: retryMs === undefined ? undefined : Number(retryMs) };
  if (counted === 'slow') return { type: 'slow', ms: Number(count) };
  if (counted === 'huge') return { type: 'huge', bytes: Number(count) };
  if (patch) return { type: 'patch', path };
  if (call) return { type: 'call', name };
  return { type: bare as 'cut' | 'empty' | 'html' | 'badsse' | 'beside' };
}

// A response ends with a call or a failure, so the calls since the last prompt show the position in its script.
export function planMove(conversation: readonly Entry[]): Move {
  let script: readonly Line[] = [];
  let asked = false;
  // The last call, and whether it was interrupted.
  let last: Line | undefined;
  let isLost = false;
  // Messages since the last call.
  let said = false;
  let turns = 0;
  let prompt = '';
  for (const entry of conversation) {
    if (entry.type === 'user') {
      const own = parseScript(entry.text).map((step) => ({ step, kept: false }));
      const decision = isLost ? DECIDED.exec(entry.text)?.[1] : undefined;
      if (decision === undefined) script = [...own, ...carryOver(script, { asked, said })];
      // Follows the instruction: repeats the request, skips it, or follows the note.
      else script = [...(own.length > 0 || decision !== 'approved' || !last ? own : [last]), ...script];
      asked = false;
      isLost = false;
      turns += 1;
      prompt = entry.text;
    } else if (entry.type === 'called') {
      const call = script.findIndex(({ step }) => CALLS.has(step.type));
      last = script[call];
      asked = last?.step.type === 'ask';
      isLost = false;
      script = call < 0 ? [] : script.slice(call + 1);
    } else if (entry.type === 'answered') asked = false;
    else if (entry.type === 'lost') isLost = true;
    said = entry.type === 'said';
  }
  if (asked)
    return { says: [{ type: 'answer', text: 'The question is asked; I end my turn.' }], end: undefined, beside: [] };
  const { before, end, beside } = nextMove(script);
  if (end || before.some((step) => SPEECH.has(step.type))) return { says: before, end, beside };
  const answer = parseScript(prompt).length > 0 ? 'Done.' : `You said: ${prompt.trim().split('\n', 1)[0]}`;
  return {
    says: [...before, { type: 'answer', text: `${answer}\nEarlier turns: ${Math.max(0, turns - 1)}.` }],
    end,
    beside,
  };
}

// The script that the next turn takes over: everything behind a question, or the rest of an earlier question. A step
// that broke the turn is removed, so that the conversation can continue behind it.
function carryOver(script: readonly Line[], { asked, said }: { asked: boolean; said: boolean }): Line[] {
  if (asked) return keep(script);
  const { before, end } = nextMove(script);
  const remaining = end ? script.slice(before.length + 1) : [];
  // Without the tool the question was a message.
  if (said && end?.type === 'ask') return keep(remaining);
  return (said || (end && FAILURES.has(end.type)) ? remaining : script).filter((line) => line.kept);
}

function keep(script: readonly Line[]): Line[] {
  return script.map(({ step }) => ({ step, kept: true }));
}

function nextMove(script: readonly Line[]): { before: ModelStep[]; end: ModelStep | undefined; beside: ModelStep[] } {
  const end = script.findIndex(({ step }) => CALLS.has(step.type) || FAILURES.has(step.type));
  const before = end < 0 ? script : script.slice(0, end);
  return {
    before: before.map(({ step }) => step),
    end: script[end]?.step,
    beside: end < 0 ? [] : callsBeside(script.slice(end + 1)),
  };
}

function callsBeside([joint, call, ...rest]: readonly Line[]): ModelStep[] {
  return joint?.step.type === 'beside' && call && CALLS.has(call.step.type) ? [call.step, ...callsBeside(rest)] : [];
}
