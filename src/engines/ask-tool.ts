// Recognises calls of our question tool in an engine's output. A tool of the same name on another server does not
// count.
import { readReceipt } from '../ask/receipt.js';
import type { Json } from '../kernel/json.js';
import type { TurnEvidence } from '../run/evidence.js';
import { parseQuestion, type Question } from '../run/interaction.js';

// Codex reports server and tool (joined here by a dot); the others report one combined name: Gemini, OpenCode, Claude
// Code.
const NAMES: ReadonlySet<string> = new Set([
  'parley.ask_human',
  'mcp_parley_ask_human',
  'parley_ask_human',
  'mcp__parley__ask_human',
]);

export function isAskTool(name: string): boolean {
  return NAMES.has(name);
}

export class AskCalls {
  readonly #questions: Question[] = [];
  readonly #receipts: (string | null)[] = [];

  // A successful call of any tool; a failed call has asked no question.
  add(name: string, input: Json | undefined, result: Json | undefined): void {
    if (!isAskTool(name)) return;
    this.#questions.push(parseQuestion(input, 'tool'));
    this.#receipts.push(readReceipt(result));
  }

  evidence(): Pick<TurnEvidence, 'questions' | 'receipts'> {
    return { questions: this.#questions, receipts: this.#receipts };
  }
}
