// How a run ended: with its result, or with why not.
import type { JSX } from 'preact';
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
          <h3 class="good">Succeeded</h3>
          {end.result == null ? <p class="dim">Without a result.</p> : <Result result={end.result} />}
        </section>
      );
    case 'canceled':
      return (
        <section class="end">
          <h3>Canceled{end.by === undefined ? '' : ` by ${end.by}`}</h3>
        </section>
      );
    case 'failed': {
      const { code, message, details } = end.error;
      const { unanswered, ...more } = details ?? {};
      return (
        <section class="end bad-edge">
          <h3 class="bad">
            Failed: <code>{code}</code>
          </h3>
          <p>{nameInProse(message)}</p>
          {unanswered !== undefined && <Unanswered question={unanswered} />}
          {Object.keys(more).length > 0 && <Pretty value={more} label="Details of the failure" />}
        </section>
      );
    }
  }
}

function Result({ result }: { readonly result: Json }): JSX.Element {
  return typeof result === 'string' ? <Markdown text={result} /> : <Pretty value={result} label="Result" />;
}

function Unanswered({ question }: { readonly question: Json }): JSX.Element {
  const prompt = asObject(question)?.['prompt'];
  return (
    <div class="unanswered">
      <p class="dim small">What it had asked, and nobody could answer:</p>
      {typeof prompt === 'string' ? <Markdown text={prompt} /> : <Pretty value={question} label="What it had asked" />}
    </div>
  );
}
