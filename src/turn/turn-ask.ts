// The question tool of one turn: its command, the nonce that marks its records, and the questions it recorded.
import { readAsks } from '../ask/ask-file.js';
import { hearQuestions } from '../ask/witnesses.js';
import type { DiagnosticCode } from '../contract/error-codes.js';
import type { Engine } from '../engines/engine.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { TurnEvidence } from '../run/evidence.js';
import type { RunRecord } from '../store/store.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { runFolder } from '../journal/run-folder.js';

export interface TurnAsk {
  readonly command: readonly string[];
  readonly file: string;
  readonly nonce: string;
}

// An auto run gets no tool, and its prompt says not to ask.
export function askFor(
  { runtime, dataDir, ids }: Pick<OrchestratorDeps, 'runtime' | 'dataDir' | 'ids'>,
  run: RunRecord,
): TurnAsk | null {
  if (!runtime.askTool || run.spec.execution_mode === 'auto') return null;
  const { asks: file } = runFolder(dataDir, run.run_id).attempt(run.attempt_number);
  const nonce = ids.interaction();
  return { command: [...runtime.askTool, '--file', file, '--nonce', nonce], file, nonce };
}

// Combines the questions that the tool recorded with those in the output.
export async function hearAsks(
  engine: Engine,
  ask: TurnAsk | null,
  evidence: TurnEvidence,
): Promise<{ evidence: TurnEvidence; remarks: RaspDraft[] }> {
  if (!ask || !engine.asksByTool) return { evidence, remarks: [] };
  const { listed, questions } = await readAsks(ask.file, ask.nonce);
  const heard = hearQuestions(questions, evidence.questions, { nonce: ask.nonce, printed: evidence.receipts ?? [] });
  const remarks: [boolean, DiagnosticCode, string][] = [
    [
      !listed && evidence.success,
      'ASK_TOOL_NOT_LISTED',
      'the engine never looked at the question tool: the agent could not ask with it',
    ],
    [
      heard.onlyRecorded > 0,
      'ASK_WITNESS_MISSING',
      `${heard.onlyRecorded} questions were taken by the tool, but the output does not show them`,
    ],
    [
      heard.onlyPrinted > 0,
      'ASK_WITNESS_MISSING',
      `${heard.onlyPrinted} questions are in the output, but the tool did not write them down`,
    ],
    [
      heard.unsigned > 0,
      'ASK_WITNESS_MISSING',
      `${heard.unsigned} questions are in the output, but not with what the tool answers in this turn`,
    ],
  ];
  return {
    evidence: { ...evidence, questions: heard.questions },
    remarks: remarks
      .filter(([isMatch]) => isMatch)
      .map(([, code, message]) =>
        draft('diagnostic.parser.warning', { code, message }, { sessionId: evidence.sessionId }),
      ),
  };
}
