// Shows when the connection to the server is lost and when it is back. The rest of the page stays as it is.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { t } from '../language/language.js';
import { connection } from '../state/server.js';
import { formatAge } from '../state/format.js';
import { now } from '../state/now.js';

const BACK_MS = 4000;

export function Banner(): JSX.Element {
  const { value } = connection;
  const [wasLost, setWasLost] = useState(false);
  useEffect(() => {
    if (value.state === 'lost') setWasLost(true);
    if (value.state !== 'open' || !wasLost) return undefined;
    const timer = setTimeout(() => setWasLost(false), BACK_MS);
    return () => clearTimeout(timer);
  }, [value.state, wasLost]);
  return (
    <div class="banners" role="status" aria-live="polite">
      {value.state === 'lost' && <p class="banner bad">{t.connection.lost(ageOf(now.value - value.since))}</p>}
      {value.state === 'open' && wasLost && <p class="banner good">{t.connection.back}</p>}
    </div>
  );
}

function ageOf(ms: number): string | null {
  return ms < 1000 ? null : formatAge(ms);
}
