// A tool call in one line: the tool and its outcome. Its input and output are shown when expanded.
import type { JSX } from 'preact';
import { t } from '../../language/language.js';
import { asObject, type Json } from '../../../../src/kernel/json.js';
import { formatDuration } from '../../state/format.js';
import type { ToolRow as Row } from '../../state/run-rows.js';
import { readFileChanges } from '../../../../src/kernel/file-changes.js';
import { countNames, nameInLine, nameInvisible } from '../../../../src/kernel/visible-text.js';
import { Diff } from '../diff.js';
import { Fold, Pretty } from './fold.js';

const MARKS = { running: '…', unfinished: '–', completed: '✓', failed: '✗', declined: '⊘' } as const;
const LINE_CHARS = 300;

export function ToolRow({ row }: { readonly row: Row }): JSX.Element {
  const { key, name, status, exitCode, durationMs, input, output, error } = row;
  const line = nameInLine(lineOf(input));
  // Line ends and tabs of a script need no warning.
  const hidden = countNames(line.replaceAll(/⟨U\+000[9A]⟩/g, ''));
  const isBad = status === 'failed' || status === 'declined';
  return (
    <Fold
      id={key}
      class={`tool ${status}`}
      summary={
        <>
          <span class={`mark ${isBad ? 'bad' : status === 'completed' ? 'good' : 'dim'}`} aria-hidden="true">
            {MARKS[status]}
          </span>
          <span class="name">{nameInLine(name)}</span>
          <code class="line">{line}</code>
          {hidden > 0 && <span class="how bad">{t.tool.invisible(hidden)}</span>}
          <span class={`how ${isBad ? 'bad' : 'dim'}`}>
            {[
              t.tool.statuses[status],
              exitCode == null ? '' : t.tool.exit(exitCode),
              durationMs === undefined ? '' : formatDuration(durationMs),
            ]
              .filter((word) => word !== '')
              .join(' · ')}
          </span>
        </>
      }
    >
      {() => (
        <>
          <Input input={input} />
          {error !== undefined && <p class="bad">{nameInvisible(error)}</p>}
          {output !== undefined && output !== '' && (
            <>
              <h4>{t.tool.output}</h4>
              <Pretty value={output} label={t.tool.output} />
            </>
          )}
          {output === undefined && error === undefined && <p class="dim">{t.tool.noOutput}</p>}
        </>
      )}
    </Fold>
  );
}

function Input({ input }: { readonly input: Json }): JSX.Element | null {
  if (input === null) return null;
  const changes = asObject(input)?.['changes'];
  if (Array.isArray(changes) && changes.every((change) => typeof asObject(change)?.['diff'] === 'string')) {
    return (
      <>
        {readFileChanges(input).map((change, index) => (
          <Diff key={index} change={change} />
        ))}
      </>
    );
  }
  return (
    <>
      <h4>{t.tool.input}</h4>
      <Pretty value={input} label={t.tool.input} />
    </>
  );
}

// The command, the path or the whole input, in one line.
function lineOf(input: Json): string {
  const fields = asObject(input);
  const named = ['command', 'path', 'file_path', 'query', 'url', 'pattern']
    .map((name) => fields?.[name])
    .find((value) => typeof value === 'string');
  const changes = fields?.['changes'];
  if (Array.isArray(changes))
    return changes
      .map((change) => textOf(asObject(change)?.['path']))
      .join(', ')
      .slice(0, LINE_CHARS);
  return (
    typeof named === 'string' ? named : typeof input === 'string' ? input : input === null ? '' : JSON.stringify(input)
  ).slice(0, LINE_CHARS);
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
