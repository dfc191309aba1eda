// Says when the server is gone, and when it is back; nothing else of the page changes meanwhile.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
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
      {value.state === 'lost' && (
        <p class="banner bad">
          The server cannot be reached{sinceText(now.value - value.since)}. Trying again; what you see may be old,
          nothing is lost.
        </p>
      )}
      {value.state === 'open' && wasLost && <p class="banner good">Connected again.</p>}
    </div>
  );
}

function sinceText(ms: number): string {
  return ms < 1000 ? '' : `, for ${formatAge(ms)} now`;
}
