// Shows exactly what an approval allows, and its four decisions. Until all of it was on the screen, approving takes a
// second step that says so. The journal records whether it was read.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { readFileChanges } from '../../../src/kernel/file-changes.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import { nameInLine, nameInvisible } from '../../../src/kernel/visible-text.js';
import { t } from '../language/language.js';
import { readApproval } from '../state/approval-text.js';
import { answer } from '../state/inbox.js';
import { isSeen } from '../state/review.js';
import { Diff } from './diff.js';

const DECISIONS = [
  {
    decision: 'approve',
    label: t.approval.approve,
    unread: { label: t.approval.approveUnread, confirm: t.approval.yesApprove },
    key: 'y',
  },
  {
    decision: 'approve_for_session',
    label: t.approval.approveForSession,
    unread: { label: t.approval.approveForSessionUnread, confirm: t.approval.yesApproveForSession },
    key: 's',
  },
  { decision: 'decline', label: t.approval.decline, unread: null, key: 'n' },
  { decision: 'cancel', label: t.approval.declineAndStop, unread: null, key: 'c' },
] as const;

type Decision = (typeof DECISIONS)[number];

// The server may send names that this version does not know: they are shown as they are.
const FIELDS: Readonly<Record<string, string>> = t.approval.fields;

interface ActionProps {
  readonly prompt: string;
  readonly action: JsonObject | undefined;
}

// The whole approval, for a person who decides.
export function ApprovalBody({ prompt, action }: ActionProps): JSX.Element {
  const changes = readFileChanges(action);
  const sum = (side: 'added' | 'removed'): number => changes.reduce((total, change) => total + change[side], 0);
  return (
    <>
      <ApprovalText prompt={prompt} action={action} isReviewed />
      {changes.length > 0 && (
        <p class="change-summary">
          <strong>{t.approval.changes(changes.length, sum('added'), sum('removed'))}</strong>
        </p>
      )}
      {changes.map((change, index) => (
        <Diff key={index} change={change} isReviewed />
      ))}
    </>
  );
}

// Everything but the changes of files. Long text scrolls in its box unless it is reviewed.
export function ApprovalText({
  prompt,
  action,
  isReviewed = false,
}: ActionProps & { readonly isReviewed?: boolean }): JSX.Element {
  const { title, command, values, reason, rest } = readApproval(prompt, action);
  return (
    <>
      <div class="question">
        {title !== null && (
          <p class="approval-title">
            <strong>{t.approval.titles[title]}</strong>
          </p>
        )}
        {command !== null && <Exact text={command} isReviewed={isReviewed} />}
        {rest !== '' && <Exact text={rest} isReviewed={isReviewed} />}
      </div>
      <dl class="action">
        {values.map(([name, value]) => (
          <div key={name}>
            <dt>{FIELDS[name] ?? nameInLine(name)}</dt>
            <dd>
              <code>{nameInvisible(value)}</code>
            </dd>
          </div>
        ))}
        {reason !== null && (
          <div>
            <dt>{t.approval.reason}</dt>
            <dd>{nameInvisible(reason)}</dd>
          </div>
        )}
      </dl>
    </>
  );
}

function Exact({ text, isReviewed }: { readonly text: string; readonly isReviewed: boolean }): JSX.Element {
  const shown = nameInvisible(text);
  return isReviewed ? (
    <pre class="plain whole">{shown}</pre>
  ) : (
    <pre class="plain" tabIndex={0} role="region" aria-label={t.answered.requested}>
      {shown}
    </pre>
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
  const decide = ({ decision }: Decision): void => {
    setAsking(null);
    const response: JsonObject = note.trim() === '' ? { decision } : { decision, note };
    void answer(item, { response, review: wasSeen ? 'seen' : 'unread' });
  };
  const press = (chosen: Decision): void => (chosen.unread !== null && !wasSeen ? setAsking(chosen) : decide(chosen));
  return (
    <>
      {!wasSeen && <p class="dim small">{t.approval.scroll}</p>}
      <div class="options decisions" role="group" aria-label={t.approval.decisions}>
        {DECISIONS.map((each) => (
          <button
            key={each.decision}
            type="button"
            class={each.decision === 'approve' && wasSeen ? 'primary' : ''}
            data-key={each.key}
            onClick={() => press(each)}
          >
            <kbd class={isActive ? '' : 'idle'}>{each.key}</kbd>{' '}
            {wasSeen ? each.label : (each.unread?.label ?? each.label)}
          </button>
        ))}
      </div>
      {asking?.unread != null && !wasSeen && (
        <div class="sure" role="alertdialog" aria-label={t.approval.sure}>
          <span>{t.approval.sureHelp}</span>
          <button type="button" class="danger" ref={(button) => button?.focus()} onClick={() => decide(asking)}>
            {asking.unread.confirm}
          </button>
          <button type="button" onClick={() => setAsking(null)}>
            {t.no}
          </button>
        </div>
      )}
      <input
        class="note"
        type="text"
        value={note}
        onInput={(event) => onNote(event.currentTarget.value)}
        placeholder={t.approval.noteHere}
        aria-label={t.approval.note}
        maxLength={2000}
      />
    </>
  );
}
