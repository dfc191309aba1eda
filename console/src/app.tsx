// The frame of every page: where one is, what waits, how the connection is.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Banner } from './parts/banner.js';
import { Link } from './parts/link.js';
import { EnginesPage } from './pages/engines.js';
import { InboxPage } from './pages/inbox.js';
import { NewRunPage } from './pages/new-run.js';
import { RunPage } from './pages/run.js';
import { RunsPage } from './pages/runs.js';
import { count } from './state/inbox.js';
import { announced, canNotify, isBlocked, notifies, toggleNotices } from './state/notices.js';
import { route } from './state/router.js';
import { connection, mayOperate, me } from './state/server.js';
import { signIn, signOut } from './state/sign-in.js';

export function App(): JSX.Element {
  useFocusOnChange();
  if (connection.value.state === 'refused') return <SignInNeeded reason={connection.value.reason} />;
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <Link to="/" class="brand" aria-label="Parley, the inbox">
          Parley
        </Link>
        <nav aria-label="Pages">
          <NavLink to="/" page="inbox">
            Inbox
            {count.value > 0 && (
              <span class="count" aria-label={`${count.value} waiting`}>
                {count.value}
              </span>
            )}
          </NavLink>
          <NavLink to="/runs" page="runs">
            Runs
          </NavLink>
          <NavLink to="/engines" page="engines">
            Engines
          </NavLink>
        </nav>
        <span class="grow" />
        {mayOperate() && (
          <Link to="/new" class="button primary">
            New run
          </Link>
        )}
        {canNotify() && isBlocked.value && (
          <span class="dim small" title="The browser blocks them for this page; its settings can change that">
            Notifications blocked
          </span>
        )}
        {canNotify() && !isBlocked.value && (
          <button
            type="button"
            class="quiet"
            aria-pressed={notifies.value}
            onClick={() => void toggleNotices()}
            title="Tell me by a notification when something new waits"
          >
            {notifies.value ? 'Notifying you' : 'Notify me'}
          </button>
        )}
        {me.value && (
          <span class="who" title={`signed in as ${me.value.name} (${me.value.role})`}>
            {me.value.name}
          </span>
        )}
        {me.value && (
          <button type="button" class="quiet" onClick={() => void signOut()}>
            Sign out
          </button>
        )}
      </header>
      <Banner />
      <p class="unseen" role="status" aria-live="polite">
        {announced.value}
      </p>
      <main id="main" tabIndex={-1}>
        <Page />
      </main>
      <footer class="foot dim">
        <a href="/docs">API documentation</a>
      </footer>
    </>
  );
}

// A page that was gone to has the focus, unless something on it has taken it: who hears the page instead of seeing it
// is there then.
function useFocusOnChange(): void {
  const { value } = route;
  const shown = value.page === 'run' ? value.id : value.page;
  const before = useRef(shown);
  useEffect(() => {
    const main = document.getElementById('main');
    if (before.current !== shown && main && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
    before.current = shown;
  }, [shown]);
}

function Page(): JSX.Element {
  const { value } = route;
  switch (value.page) {
    case 'inbox':
      return <InboxPage />;
    case 'runs':
      return <RunsPage />;
    case 'new':
      return <NewRunPage />;
    case 'engines':
      return <EnginesPage />;
    case 'run':
      return <RunPage key={value.id} id={value.id} />;
    case 'nowhere':
      return (
        <div class="empty">
          <h1>Nothing here</h1>
          <p>
            <code>{value.path}</code> is no page of the console. <Link to="/">To the inbox</Link>
          </p>
        </div>
      );
  }
}

function NavLink({
  to,
  page,
  children,
}: {
  readonly to: string;
  readonly page: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  const isHere = route.value.page === page || (page === 'runs' && route.value.page === 'run');
  return (
    <Link to={to} aria-current={isHere ? 'page' : undefined}>
      {children}
    </Link>
  );
}

function SignInNeeded({ reason }: { readonly reason: string }): JSX.Element {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState('');
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setProblem('');
    const refusal = await signIn({ token: token.trim() });
    if (refusal === null) location.reload();
    else setProblem(refusal);
  };
  return (
    <main class="empty">
      <h1>Parley</h1>
      <p>
        This browser is not signed in. Run <code>parley link</code> where the server runs, and open the link or scan the
        QR code.
      </p>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          Or sign in with a token:{' '}
          <input
            type="password"
            autocomplete="off"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>{' '}
        <button type="submit">Sign in</button>
      </form>
      {problem !== '' && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      <p class="dim">{reason}</p>
    </main>
  );
}
