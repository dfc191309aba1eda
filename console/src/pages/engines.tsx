// The engines: which are there and what to do about the others; and how well their output was understood.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Bar, Bars } from '../parts/bars.js';
import { loadEngines, loadProfiles, type EngineReport, type ProfileTotals } from '../state/engines.js';
import { formatCount } from '../state/format.js';
import { connection, messageOf } from '../state/server.js';
import './engines.css';

// Below it a parser has missed something; below the second much of a conversation is shown as raw text only.
const GOOD = 0.99;
const POOR = 0.9;
const AGAIN_MS = 10_000;

type Loaded =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly why: string }
  | { readonly state: 'here'; readonly engines: readonly EngineReport[]; readonly profiles: readonly ProfileTotals[] };

export function EnginesPage(): JSX.Element {
  const [loaded, setLoaded] = useState<Loaded>({ state: 'loading' });
  const link = connection.value.state;
  useEffect(() => {
    let isHere = true;
    const look = async (): Promise<void> => {
      try {
        const [engines, profiles] = await Promise.all([loadEngines(), loadProfiles()]);
        if (isHere) setLoaded({ state: 'here', engines, profiles });
      } catch (error) {
        // What is known stays; the frame says that the server is gone.
        if (isHere)
          setLoaded((before) => (before.state === 'here' ? before : { state: 'failed', why: messageOf(error) }));
      }
    };
    void look();
    const timer = setInterval(() => void (document.visibilityState === 'visible' && look()), AGAIN_MS);
    return () => {
      isHere = false;
      clearInterval(timer);
    };
  }, [link]);
  if (loaded.state === 'loading')
    return (
      <p class="empty dim" role="status">
        Looking at the engines…
      </p>
    );
  if (loaded.state === 'failed')
    return (
      <p class="empty bad" role="alert">
        The engines could not be looked at: {loaded.why}
      </p>
    );
  return (
    <div class="engines-page wide">
      <h1>Engines</h1>
      <div class="engine-cards">
        {inOrder(loaded.engines).map((engine) => (
          <EngineCard key={engine.name} engine={engine} />
        ))}
      </div>
      <p class="dim">
        As far as files tell. <code>parley doctor</code> also starts each program and asks for its version.
      </p>
      <h2>How well their output is understood</h2>
      <Explanation />
      {loaded.profiles.length === 0 ? (
        <p class="empty">No turn has ended yet. When one has, its figures are here.</p>
      ) : (
        <div class="profile-cards">
          {loaded.profiles.map((totals) => (
            <ProfileCard key={`${totals.engine} ${totals.profile}`} totals={totals} />
          ))}
        </div>
      )}
    </div>
  );
}

function inOrder(engines: readonly EngineReport[]): readonly EngineReport[] {
  return engines.toSorted((a, b) => Number(b.found) - Number(a.found));
}

function EngineCard({
  engine: { name, found, program, version, proved_version: proved, login, advice },
}: {
  readonly engine: EngineReport;
}): JSX.Element {
  const isReady = found && login !== false;
  return (
    <article class={`engine-card${found ? '' : ' missing'}`} aria-label={name} data-engine={name}>
      <header>
        <h2>{name}</h2>
        <span class={`mark ${isReady ? 'good' : found ? 'warn' : 'dim'}`}>
          {isReady ? '✓ ready' : found ? '! not logged in' : '– not installed'}
        </span>
      </header>
      <dl>
        {found && (
          <>
            <dt>version</dt>
            <dd>
              {version ?? 'not known'}
              {version !== null && version !== proved && <span class="warn"> (not the one that was proved)</span>}
            </dd>
          </>
        )}
        <dt>proved with</dt>
        <dd>{proved}</dd>
        {found && (
          <>
            <dt>login</dt>
            <dd>{login === null ? 'needs none' : login ? 'found' : 'none found'}</dd>
          </>
        )}
        {program !== null && (
          <>
            <dt>program</dt>
            <dd>
              <code>{program}</code>
            </dd>
          </>
        )}
      </dl>
      {advice !== null && <p class="advice">{advice}</p>}
    </article>
  );
}

function Explanation(): JSX.Element {
  return (
    <p class="dim explanation">
      The <em>hit rate</em> is the share of the printed pieces that the parser knew. What it does not know is kept as
      raw text, never dropped. A low rate means that the engine prints something new, most often after an update:
      conversations then have gaps in what is shown, and turns may end as <em>unknown</em>. The raw log of the run has
      all of it.
    </p>
  );
}

function ProfileCard({
  totals: { engine, profile, turns, units, parsed, fallbacks, hit_rate: rate, warnings, unknown },
}: {
  readonly totals: ProfileTotals;
}): JSX.Element {
  const tone = rate === null || rate >= GOOD ? 'good' : rate >= POOR ? 'warn' : 'bad';
  const unjudged = Object.values(unknown).reduce((sum, count) => sum + count, 0);
  return (
    <article class="profile-card" aria-label={`${engine}, ${profile}`} data-profile={profile}>
      <header>
        <h3>{engine}</h3>
        <code class="dim">{profile}</code>
      </header>
      <div class="rate">
        <span class={`figure ${tone}`}>{rate === null ? '–' : percent(rate)}</span>{' '}
        <span class="dim">
          hit rate{rate !== null && rate < GOOD ? (rate < POOR ? ': low' : ': below what was proved') : ''}
        </span>
        <Bar share={rate ?? 0} tone={tone} />
        <p class="dim">
          {formatCount(parsed)} of {formatCount(units)} pieces understood, {formatCount(fallbacks)} kept as raw text
        </p>
      </div>
      <p>
        {formatCount(turns)} {turns === 1 ? 'turn' : 'turns'} ended,{' '}
        <span class={unjudged > 0 ? 'warn' : ''}>{formatCount(unjudged)} of them without a clear end</span>
      </p>
      <Bars title="Ends that could not be judged" counts={unknown} none="None." tone="bad" />
      <Bars title="Oddities of the output" counts={warnings} none="None." tone="warn" />
    </article>
  );
}

// Never 100 % where one is missing.
function percent(rate: number): string {
  return rate === 1 ? '100 %' : `${(Math.floor(rate * 1000) / 10).toFixed(1)} %`;
}
