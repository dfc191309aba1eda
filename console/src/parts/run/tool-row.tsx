// A tool call in one line: what was called, how it went; what it was given and what came out of it when opened.
import type { JSX } from 'preact';
import { asObject, type Json } from '../../../../src/kernel/json.js';
import { formatDuration } from '../../state/format.js';
import type { ToolRow as Row } from '../../state/run-rows.js';
import { readFileChanges } from '../../../../src/kernel/file-changes.js';
import { countNames, nameInLine, nameInvisible } from '../../../../src/kernel/visible-text.js';
import { Diff } from '../diff.js';
import { Fold, Pretty } from './fold.js';

const MARKS = { running: '…', unfinished: '–', completed: '✓', failed: '✗', declined: '⊘' } as const;
const WORDS = {
  running: 'running',
  unfinished: 'not finished',
  completed: 'done',
  failed: 'failed',
  declined: 'declined',
} as const;
const LINE_CHARS = 300;

export function ToolRow({ row }: { readonly row: Row }): JSX.Element {
  const { key, name, status, exitCode, durationMs, input, output, error } = row;
  const line = nameInLine(lineOf(input));
  // A script of several lines is nothing to be warned of.
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
          {hidden > 0 && (
            <span class="how bad">
              {hidden} invisible {hidden === 1 ? 'character' : 'characters'}
            </span>
          )}
          <span class={`how ${isBad ? 'bad' : 'dim'}`}>
            {[
              WORDS[status],
              exitCode == null ? '' : `exit ${exitCode}`,
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
              <h4>Output</h4>
              <Pretty value={output} label="Output" />
            </>
          )}
          {output === undefined && error === undefined && <p class="dim">No output.</p>}
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
      <h4>Input</h4>
      <Pretty value={input} label="Input" />
    </>
  );
}

// The command, the path, or whatever it was given, in one line.
function lineOf(input: Json): string {
  const given = asObject(input);
  const named = ['command', 'path', 'file_path', 'query', 'url', 'pattern']
    .map((name) => given?.[name])
    .find((value) => typeof value === 'string');
  const changes = given?.['changes'];
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
