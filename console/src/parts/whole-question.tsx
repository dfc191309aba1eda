// A question of the inbox, whole. The list shortens long questions: such a question is read whole before anybody can
// answer it, and until then the card shows its beginning without any way to answer.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { InboxItem } from '../../../src/client/index.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import { client, messageOf } from '../state/server.js';
import { nameInvisible } from '../../../src/kernel/visible-text.js';
import { QuestionCard } from './question-card.js';

interface WholeQuestionProps {
  readonly item: InboxItem;
  readonly isActive: boolean;
  readonly onActivate: () => void;
}

export function WholeQuestion({ item, isActive, onActivate }: WholeQuestionProps): JSX.Element {
  const isShort = item.state === 'pending' && item.truncated.includes('question');
  const { question, problem, load } = useQuestion(item, isShort);
  if (!isShort) return <QuestionCard item={item} isActive={isActive} onActivate={onActivate} />;
  if (question !== null)
    return <QuestionCard item={{ ...item, question }} isActive={isActive} onActivate={onActivate} />;
  return (
    <article
      class={`card${isActive ? ' active' : ''}`}
      data-interaction={item.interaction_id}
      tabIndex={-1}
      aria-label="A long question"
      onFocusIn={onActivate}
      onPointerDown={onActivate}
    >
      <header>
        <span class="engine">{item.engine}</span>
      </header>
      <pre class="plain">{nameInvisible(String(item.question['prompt'] ?? ''))}…</pre>
      <p role="status">
        {problem === null ? (
          'Loading the whole question…'
        ) : (
          <>
            The whole question could not be loaded: {problem}{' '}
            <button type="button" onClick={load}>
              Try again
            </button>
          </>
        )}
      </p>
    </article>
  );
}

function useQuestion(
  { run_id: runId, interaction_id: id }: InboxItem,
  isWanted: boolean,
): { readonly question: JsonObject | null; readonly problem: string | null; readonly load: () => void } {
  const [question, setQuestion] = useState<JsonObject | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = (): void => {
    setProblem(null);
    client.interaction(runId).then(
      (whole) => {
        // The run may have asked another question meanwhile; then this one is resolved, and the list says so soon.
        if (whole.interaction_id === id) setQuestion(whole.question);
      },
      (error: unknown) => setProblem(messageOf(error)),
    );
  };
  useEffect(() => {
    if (isWanted && question === null) load();
  }, [id, isWanted]);
  return { question, problem, load };
}
