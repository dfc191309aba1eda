// A question of the tool has two witnesses: the file that the tool wrote, and the engine's output. Either is enough.
// Questions that only one of them has are counted, and so are calls in the output whose result does not contain the
// nonce of this turn.
import { canonicalText, type JsonObject } from '../kernel/json.js';
import { parseQuestion, type Question } from '../run/interaction.js';

export interface Heard {
  readonly questions: readonly Question[];
  // How many questions only the file has, and how many only the output.
  readonly onlyRecorded: number;
  readonly onlyPrinted: number;
  // How many questions both have, but the output without this turn's receipt.
  readonly unsigned: number;
}

export interface Receipts {
  readonly nonce: string;
  // The receipts of the printed tool calls, in their order.
  readonly printed: readonly (string | null)[];
}

// Without receipts, `unsigned` is 0.
export function hearQuestions(
  recorded: readonly JsonObject[],
  printed: readonly Question[],
  receipts?: Receipts,
): Heard {
  const byTool = recorded.map((question) => parseQuestion(question, 'tool'));
  const open = byTool.map(canonicalText);
  const calls = printed.filter(({ channel }) => channel === 'tool');
  const matched = calls.filter((question) => {
    const at = open.indexOf(canonicalText(question));
    if (at >= 0) open.splice(at, 1);
    return at >= 0;
  });
  const rest = printed.filter((question) => !matched.includes(question));
  const unsigned = receipts
    ? matched.filter((question) => receipts.printed[calls.indexOf(question)] !== receipts.nonce).length
    : 0;
  return {
    questions: [...byTool, ...rest],
    onlyRecorded: open.length,
    onlyPrinted: calls.length - matched.length,
    unsigned,
  };
}
