// Splits an approval into a title, a command, named values and the agent's reason, so that nothing is shown twice and
// nothing is left out. The server's prompt repeats the action: a part of the prompt is removed only if the action has
// exactly the same text. Everything else stays, also in prompts that this code does not know. Pure.
import { asObject, type Json, type JsonObject } from '../../../src/kernel/json.js';
import { readFileChanges } from '../../../src/kernel/file-changes.js';

type Title = 'command' | 'file_change' | 'network' | 'permissions' | 'open_url' | 'mcp_tool_call';

export interface ApprovalText {
  // Null: an action that this code does not know. The prompt is then shown completely.
  readonly title: Title | null;
  readonly command: string | null;
  readonly values: readonly (readonly [name: string, text: string])[];
  readonly reason: string | null;
  // What remains of the prompt.
  readonly rest: string;
}

const KNOWN: ReadonlySet<string> = new Set(['command', 'file_change', 'permissions', 'open_url', 'mcp_tool_call']);
const QUOTE = '  | ';
const REASON = /^(?:Its reason|Reason):$/;
// The server splits quoted text at these positions and adds a newline.
const LINE_END = /\n|(?<=\r)(?!\n)|(?<=[\u2028\u2029])/;

export function readApproval(prompt: string, action: JsonObject = {}): ApprovalText {
  const changes = readFileChanges(action);
  const entries = Object.entries(action).filter(([name]) => name !== 'changes' || changes.length === 0);
  const title = titleOf(action);
  if (title === null) return { title, command: null, values: entries.map(named), reason: null, rest: prompt };
  const command = typeof action['command'] === 'string' ? action['command'] : null;
  const covered = new Set<string>(['kind']);
  if (command !== null) covered.add('command');
  if (title === 'network' && action['kind'] === 'permissions') covered.add('permissions');
  const known = new Set(Object.values(action).map(quote));
  const files = new Set(
    changes.map(({ kind, path, moveTo }) => `${kind} ${path}${moveTo === undefined ? '' : ` -> ${moveTo}`}`),
  );
  const blocks = splitBlocks(prompt);
  const reason = blocks.find(({ label }) => REASON.test(label));
  const rest = blocks.filter((block, index) => {
    if (block === reason) return false;
    const isRepeated = block.quoted === '' ? files.has(block.label) : known.has(block.quoted);
    return !(isRepeated || (index === 0 && block.quoted === '' && /[:?]$/.test(block.label)));
  });
  return {
    title,
    command,
    values: entries.filter(([name]) => !covered.has(name)).map(named),
    reason: reason ? unquote(reason.quoted) : null,
    rest: rest.map(({ label, quoted }) => [label, quoted].filter((part) => part !== '').join('\n')).join('\n'),
  };
}

function titleOf({ kind, command, network, permissions }: JsonObject): Title | null {
  if (typeof kind !== 'string' || !KNOWN.has(kind)) return null;
  if (kind === 'command') return typeof command === 'string' ? 'command' : network === undefined ? null : 'network';
  if (kind === 'permissions') return isNetworkOnly(permissions) ? 'network' : 'permissions';
  return kind as Title;
}

// Exactly network access and nothing else: the title alone then names everything that is allowed.
function isNetworkOnly(permissions: Json | undefined): boolean {
  const allowed = Object.entries(asObject(permissions) ?? {}).filter(([, value]) => value !== null);
  const [only] = allowed;
  return allowed.length === 1 && only?.[0] === 'network' && JSON.stringify(only[1]) === '{"enabled":true}';
}

function named([name, value]: readonly [string, Json]): readonly [string, string] {
  return [name, typeof value === 'string' ? value : JSON.stringify(value)];
}

interface Block {
  readonly label: string;
  readonly quoted: string;
}

// A label and the quoted lines below it.
function splitBlocks(prompt: string): readonly Block[] {
  const blocks: { label: string; quoted: string }[] = [];
  for (const line of prompt.split('\n')) {
    const last = blocks.at(-1);
    if (!line.startsWith(QUOTE)) blocks.push({ label: line, quoted: '' });
    else if (last) last.quoted += last.quoted === '' ? line : `\n${line}`;
    else blocks.push({ label: '', quoted: line });
  }
  return blocks;
}

// As the server quotes a value.
function quote(value: Json): string {
  return (typeof value === 'string' ? value : JSON.stringify(value))
    .split(LINE_END)
    .map((line) => QUOTE + line)
    .join('\n');
}

function unquote(quoted: string): string {
  return quoted
    .split('\n')
    .map((line) => line.slice(QUOTE.length))
    .join('\n');
}
