// Which engine shall do it: those that are there first; what is missing says how to get it.
import type { JSX } from 'preact';
import { REHEARSAL, type EngineReport } from '../state/engines.js';

interface ChoiceProps {
  readonly engines: readonly EngineReport[];
  readonly chosen: string;
  readonly problem: string | undefined;
  readonly onChoose: (name: string) => void;
}

export function EngineChoice({ engines, chosen, problem, onChoose }: ChoiceProps): JSX.Element {
  return (
    <fieldset
      class="choices engines"
      id="field-engine"
      aria-describedby={problem === undefined ? undefined : 'problem-engine'}
    >
      <legend>Engine</legend>
      {inOrder(engines).map(({ name, found, version, advice }) => (
        <label key={name} class={`choice${found ? '' : ' missing'}`}>
          <input
            type="radio"
            name="engine"
            value={name}
            checked={chosen === name}
            disabled={!found}
            onChange={() => onChoose(name)}
          />
          <span class="name">{name}</span> {found && version !== null && <span class="dim">{version}</span>}{' '}
          {!found && <span class="dim">not installed</span>}
          {advice !== null && <small class={found ? 'warn' : 'dim'}>{advice}</small>}
          {name === REHEARSAL && (
            <small class="dim">A script plays an agent: no login, no cost, nothing is executed.</small>
          )}
        </label>
      ))}
      {problem !== undefined && (
        <p id="problem-engine" class="bad">
          {problem}
        </p>
      )}
    </fieldset>
  );
}

// The rehearsal after those that really work.
function inOrder(engines: readonly EngineReport[]): readonly EngineReport[] {
  return engines.toSorted((a, b) => rank(a) - rank(b));
}

function rank({ name, found }: EngineReport): number {
  if (!found) return 2;
  return name === REHEARSAL ? 1 : 0;
}

// What was chosen last if it is still there; else one that is ready; else the rehearsal.
export function defaultEngine(engines: readonly EngineReport[], last: string): string {
  const there = inOrder(engines).filter(({ found }) => found);
  return (
    (there.find(({ name }) => name === last) ?? there.find(({ login }) => login !== false) ?? there[0])?.name ?? ''
  );
}

export function hasOnlyRehearsal(engines: readonly EngineReport[]): boolean {
  return !engines.some(({ name, found }) => found && name !== REHEARSAL);
}
