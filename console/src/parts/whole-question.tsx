// Shows a question of the inbox in full. The list shortens long questions: such a question is loaded before it can be
// answered. Until then the card shows its beginning and has no buttons.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { t } from '../language/language.js';
import type { InboxItem, Question } from '../../../src/client/index.js';
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
      aria-label={t.question.longQuestion}
      onFocusIn={onActivate}
      onPointerDown={onActivate}
    >
      <header>
        <span class="engine">{item.engine}</span>
      </header>
      <pre class="plain">{nameInvisible(item.question.prompt)}…</pre>
      <p role="status">
        {problem === null ? (
          t.question.loadingWhole
        ) : (
          <>
            {t.question.loadFailed(problem)}{' '}
            <button type="button" onClick={load}>
              {t.tryAgain}
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
): { readonly question: Question | null; readonly problem: string | null; readonly load: () => void } {
  const [question, setQuestion] = useState<Question | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = (): void => {
    setProblem(null);
    client.interaction(runId).then(
      (whole) => {
        // The run may have asked another question by now. The list will soon show this one as resolved.
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
