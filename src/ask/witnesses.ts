// A question of the tool has two witnesses: the file that the tool wrote, and the engine's output. Either is enough; what only
// one of them saw is told.
import { canonicalText, type JsonObject } from '../kernel/json.js';
import { parseQuestion, type Question } from '../run/interaction.js';

export interface Heard {
  readonly questions: readonly Question[];
  // How many only the file has, and how many only the output.
  readonly onlyRecorded: number;
  readonly onlyPrinted: number;
}

export function hearQuestions(recorded: readonly JsonObject[], printed: readonly Question[]): Heard {
  const byTool = recorded.map((question) => parseQuestion(question, 'tool'));
  const open = byTool.map(canonicalText);
  const rest = printed.filter((question) => {
    const at = question.channel === 'tool' ? open.indexOf(canonicalText(question)) : -1;
    if (at >= 0) open.splice(at, 1);
    return at < 0;
  });
  const onlyPrinted = rest.filter(({ channel }) => channel === 'tool').length;
  return { questions: [...byTool, ...rest], onlyRecorded: open.length, onlyPrinted };
}
