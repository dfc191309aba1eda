// The choice of an engine: installed engines first, the others with how to install them.
import type { JSX } from 'preact';
import { t } from '../language/language.js';
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
      <legend>{t.newRun.engine}</legend>
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
          {!found && <span class="dim">{t.newRun.notInstalled}</span>}
          {advice !== null && <small class={found ? 'warn' : 'dim'}>{advice}</small>}
          {name === REHEARSAL && <small class="dim">{t.newRun.rehearsalHelp}</small>}
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

// Real engines come before the rehearsal.
function inOrder(engines: readonly EngineReport[]): readonly EngineReport[] {
  return engines.toSorted((a, b) => rank(a) - rank(b));
}

function rank({ name, found }: EngineReport): number {
  if (!found) return 2;
  return name === REHEARSAL ? 1 : 0;
}

// The engine chosen last if it is still installed, otherwise one that is ready, otherwise the rehearsal.
export function defaultEngine(engines: readonly EngineReport[], last: string): string {
  const installed = inOrder(engines).filter(({ found }) => found);
  return (
    (installed.find(({ name }) => name === last) ?? installed.find(({ login }) => login !== false) ?? installed[0])
      ?.name ?? ''
  );
}

export function hasOnlyRehearsal(engines: readonly EngineReport[]): boolean {
  return !engines.some(({ name, found }) => found && name !== REHEARSAL);
}
