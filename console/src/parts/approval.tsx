// What an approval is about, whole, and its four decisions. Until all of it was on the screen, approving takes a second
// step that says so; the journal records which it was.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { readFileChanges, summarizeChanges } from '../../../src/kernel/file-changes.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import { nameInLine, nameInvisible } from '../../../src/kernel/visible-text.js';
import { answer } from '../state/inbox.js';
import { isSeen } from '../state/review.js';
import { Diff } from './diff.js';

const DECISIONS = [
  { decision: 'approve', label: 'Approve', unread: 'Approve without reading', key: 'y' },
  {
    decision: 'approve_for_session',
    label: 'Approve for this session',
    unread: 'Approve for this session without reading',
    key: 's',
  },
  { decision: 'decline', label: 'Decline', unread: null, key: 'n' },
  { decision: 'cancel', label: 'Decline and stop', unread: null, key: 'c' },
] as const;

type Decision = (typeof DECISIONS)[number];

export function Action({ action }: { readonly action: JsonObject }): JSX.Element {
  const changes = readFileChanges(action);
  const rest = Object.entries(action).filter(([name]) => name !== 'changes' || changes.length === 0);
  return (
    <>
      <dl class="action">
        {rest.map(([name, value]) => (
          <div key={name}>
            <dt>{nameInLine(name)}</dt>
            <dd>
              <code>{nameInvisible(typeof value === 'string' ? value : JSON.stringify(value))}</code>
            </dd>
          </div>
        ))}
      </dl>
      {changes.length > 0 && (
        <p class="change-summary">
          <strong>{summarizeChanges(changes)}</strong>
        </p>
      )}
      {changes.map((change, index) => (
        <Diff key={index} change={change} isReviewed />
      ))}
    </>
  );
}

interface DecisionsProps {
  readonly item: { readonly run_id: string; readonly interaction_id: string };
  readonly isActive: boolean;
  readonly note: string;
  readonly onNote: (note: string) => void;
}

export function Decisions({ item, isActive, note, onNote }: DecisionsProps): JSX.Element {
  const wasSeen = isSeen(item.interaction_id);
  const [asking, setAsking] = useState<Decision | null>(null);
  const decide = ({ decision, label }: Decision): void => {
    setAsking(null);
    const response: JsonObject = note.trim() === '' ? { decision } : { decision, note };
    void answer(item, { response, review: wasSeen ? 'seen' : 'unread' }, label);
  };
  const press = (chosen: Decision): void => (chosen.unread !== null && !wasSeen ? setAsking(chosen) : decide(chosen));
  return (
    <>
      {!wasSeen && <p class="dim small">Scroll through all of it to approve it as read.</p>}
      <div class="options decisions" role="group" aria-label="Decisions">
        {DECISIONS.map((each) => (
          <button
            key={each.decision}
            type="button"
            class={each.decision === 'approve' && wasSeen ? 'primary' : ''}
            data-key={each.key}
            onClick={() => press(each)}
          >
            <kbd class={isActive ? '' : 'idle'}>{each.key}</kbd> {wasSeen ? each.label : (each.unread ?? each.label)}
          </button>
        ))}
      </div>
      {asking?.unread != null && !wasSeen && (
        <div class="sure" role="alertdialog" aria-label="Approve without reading?">
          <span>Not all of it was on your screen. Approve it anyway? The record will say that it was not read.</span>
          <button type="button" class="danger" ref={(button) => button?.focus()} onClick={() => decide(asking)}>
            Yes, {asking.unread.toLowerCase()}
          </button>
          <button type="button" onClick={() => setAsking(null)}>
            No
          </button>
        </div>
      )}
      <input
        class="note"
        type="text"
        value={note}
        onInput={(event) => onNote(event.currentTarget.value)}
        placeholder="A note to the agent, if you like"
        aria-label="A note to the agent"
        maxLength={2000}
      />
    </>
  );
}
