// The engines: which are installed, how to install the others, and how much of their output was recognized.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { t } from '../language/language.js';
import { Bar, Bars } from '../parts/bars.js';
import { loadEngines, loadProfiles, type EngineReport, type ProfileTotals } from '../state/engines.js';
import { formatCount } from '../state/format.js';
import { connection, messageOf } from '../state/server.js';
import './engines.css';

// Below GOOD the parser missed something. Below POOR much of a conversation is shown only as raw text.
const GOOD = 0.99;
const POOR = 0.9;
const REFRESH_MS = 10_000;

type Loaded =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly why: string }
  | {
      readonly state: 'loaded';
      readonly engines: readonly EngineReport[];
      readonly profiles: readonly ProfileTotals[];
    };

export function EnginesPage(): JSX.Element {
  const [loaded, setLoaded] = useState<Loaded>({ state: 'loading' });
  const link = connection.value.state;
  useEffect(() => {
    let isMounted = true;
    const load = async (): Promise<void> => {
      try {
        const [{ engines }, profiles] = await Promise.all([loadEngines(), loadProfiles()]);
        if (isMounted) setLoaded({ state: 'loaded', engines, profiles });
      } catch (error) {
        // Keeps the loaded data. The banner shows that the server is unreachable.
        if (isMounted)
          setLoaded((before) => (before.state === 'loaded' ? before : { state: 'failed', why: messageOf(error) }));
      }
    };
    void load();
    const timer = setInterval(() => void (document.visibilityState === 'visible' && load()), REFRESH_MS);
    return () => {
      isMounted = false;
      clearInterval(timer);
    };
  }, [link]);
  if (loaded.state === 'loading')
    return (
      <p class="empty dim" role="status">
        {t.engines.loading}
      </p>
    );
  if (loaded.state === 'failed')
    return (
      <p class="empty bad" role="alert">
        {t.engines.loadFailed(loaded.why)}
      </p>
    );
  return (
    <div class="engines-page wide">
      <h1>{t.engines.title}</h1>
      <div class="engine-cards">
        {inOrder(loaded.engines).map((engine) => (
          <EngineCard key={engine.name} engine={engine} />
        ))}
      </div>
      <p class="dim">{t.engines.filesOnly(<code>parley doctor</code>)}</p>
      <h2>{t.engines.parsing}</h2>
      <p class="dim explanation">
        {t.engines.explanation((word) => (
          <em>{word}</em>
        ))}
      </p>
      {loaded.profiles.length === 0 ? (
        <p class="empty">{t.engines.noTurns}</p>
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
  engine: { name, found, program, version, proved_version: tested, login, advice },
}: {
  readonly engine: EngineReport;
}): JSX.Element {
  const isReady = found && login !== false;
  return (
    <article class={`engine-card${found ? '' : ' missing'}`} aria-label={name} data-engine={name}>
      <header>
        <h2>{name}</h2>
        <span class={`mark ${isReady ? 'good' : found ? 'warn' : 'dim'}`}>
          {isReady ? t.engines.ready : found ? t.engines.notLoggedIn : t.engines.notInstalled}
        </span>
      </header>
      <dl>
        {found && (
          <>
            <dt>{t.engines.version}</dt>
            <dd>
              {version ?? t.engines.unknownVersion}
              {version !== null && version !== tested && <span class="warn">{t.engines.untested}</span>}
            </dd>
          </>
        )}
        <dt>{t.engines.testedWith}</dt>
        <dd>{tested}</dd>
        {found && (
          <>
            <dt>{t.engines.login}</dt>
            <dd>{login === null ? t.engines.loginNotNeeded : login ? t.engines.loginFound : t.engines.loginMissing}</dd>
          </>
        )}
        {program !== null && (
          <>
            <dt>{t.engines.program}</dt>
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

function ProfileCard({
  totals: { engine, profile, turns, units, parsed, fallbacks, hit_rate: rate, warnings, unknown },
}: {
  readonly totals: ProfileTotals;
}): JSX.Element {
  const tone = rate === null || rate >= GOOD ? 'good' : rate >= POOR ? 'warn' : 'bad';
  const unclear = Object.values(unknown).reduce((sum, count) => sum + count, 0);
  return (
    <article class="profile-card" aria-label={`${engine}, ${profile}`} data-profile={profile}>
      <header>
        <h3>{engine}</h3>
        <code class="dim">{profile}</code>
      </header>
      <div class="rate">
        <span class={`figure ${tone}`}>{rate === null ? '–' : percent(rate)}</span>{' '}
        <span class="dim">
          {tone === 'good' ? t.engines.hitRate : tone === 'bad' ? t.engines.lowHitRate : t.engines.reducedHitRate}
        </span>
        <Bar share={rate ?? 0} tone={tone} />
        <p class="dim">{t.engines.pieces(formatCount(parsed), formatCount(units), formatCount(fallbacks))}</p>
      </div>
      <p>
        {t.engines.turns(turns, formatCount(turns))}
        <span class={unclear > 0 ? 'warn' : ''}>{t.engines.unclear(formatCount(unclear))}</span>
      </p>
      <Bars title={t.engines.unclearTurns} counts={unknown} none={t.none} tone="bad" />
      <Bars title={t.engines.warnings} counts={warnings} none={t.none} tone="warn" />
    </article>
  );
}

// Rounds down: 100 % means that nothing is missing.
function percent(rate: number): string {
  return t.engines.percent(rate === 1 ? '100' : (Math.floor(rate * 1000) / 10).toFixed(1));
}
