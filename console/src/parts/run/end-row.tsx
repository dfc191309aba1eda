// The end of a run: its result, or why it failed.
import type { JSX } from 'preact';
import { t } from '../../language/language.js';
import { asObject, type Json } from '../../../../src/kernel/json.js';
import { nameInProse } from '../../../../src/kernel/visible-text.js';
import type { EndRow as Row } from '../../state/run-rows.js';
import { Markdown } from '../markdown.js';
import { Pretty } from './fold.js';

export function EndRow({ row: { end } }: { readonly row: Row }): JSX.Element {
  switch (end.state) {
    case 'succeeded':
      return (
        <section class="end good-edge">
          <h3 class="good">{t.end.succeeded}</h3>
          {end.result == null ? <p class="dim">{t.end.noResult}</p> : <Result result={end.result} />}
        </section>
      );
    case 'canceled':
      return (
        <section class="end">
          <h3>{end.by === undefined ? t.end.canceled : t.end.canceledBy(end.by)}</h3>
        </section>
      );
    case 'failed': {
      const { code, message, details } = end.error;
      const { unanswered, ...more } = details ?? {};
      return (
        <section class="end bad-edge">
          <h3 class="bad">{t.end.failed(<code>{code}</code>)}</h3>
          <p>{nameInProse(message)}</p>
          {unanswered !== undefined && <Unanswered question={unanswered} />}
          {Object.keys(more).length > 0 && <Pretty value={more} label={t.end.failureDetails} />}
        </section>
      );
    }
  }
}

function Result({ result }: { readonly result: Json }): JSX.Element {
  return typeof result === 'string' ? <Markdown text={result} /> : <Pretty value={result} label={t.end.result} />;
}

function Unanswered({ question }: { readonly question: Json }): JSX.Element {
  const prompt = asObject(question)?.['prompt'];
  return (
    <div class="unanswered">
      <p class="dim small">{t.end.unanswered}</p>
      {typeof prompt === 'string' ? (
        <Markdown text={prompt} />
      ) : (
        <Pretty value={question} label={t.end.unansweredQuestion} />
      )}
    </div>
  );
}
