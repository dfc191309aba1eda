// The frame of every page: navigation, the number of waiting questions, and the state of the connection.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { t } from './language/language.js';
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
        {t.frame.skip}
      </a>
      <header class="top">
        <Link to="/" class="brand" aria-label={t.frame.home}>
          {t.product}
        </Link>
        <nav aria-label={t.pages.label}>
          <NavLink to="/" page="inbox">
            {t.pages.inbox}
            {count.value > 0 && (
              <span class="count" aria-label={t.frame.waiting(count.value)}>
                {count.value}
              </span>
            )}
          </NavLink>
          <NavLink to="/runs" page="runs">
            {t.pages.runs}
          </NavLink>
          <NavLink to="/engines" page="engines">
            {t.pages.engines}
          </NavLink>
        </nav>
        <span class="grow" />
        {mayOperate() && (
          <Link to="/new" class="button primary">
            {t.pages.new}
          </Link>
        )}
        {canNotify() && isBlocked.value && (
          <span class="dim small" title={t.frame.notificationsBlockedHelp}>
            {t.frame.notificationsBlocked}
          </span>
        )}
        {canNotify() && !isBlocked.value && (
          <button
            type="button"
            class="quiet"
            aria-pressed={notifies.value}
            onClick={() => void toggleNotices()}
            title={t.frame.notifyHelp}
          >
            {notifies.value ? t.frame.notificationsOn : t.frame.notifyMe}
          </button>
        )}
        {me.value && (
          <span class="who" title={t.frame.signedInAs(me.value.name, me.value.role)}>
            {me.value.name}
          </span>
        )}
        {me.value && (
          <button type="button" class="quiet" onClick={() => void signOut()}>
            {t.frame.signOut}
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
        <a href="/docs">{t.frame.apiDocumentation}</a>
      </footer>
    </>
  );
}

// Moves the focus to a newly opened page, unless something on it already has the focus. Screen readers then read the
// new page.
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
          <h1>{t.pages.nowhere}</h1>
          <p>
            {t.frame.notAPage(<code>{value.path}</code>)} <Link to="/">{t.frame.toInbox}</Link>
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
      <h1>{t.product}</h1>
      <p>{t.signIn.help(<code>parley link</code>)}</p>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          {t.signIn.token}{' '}
          <input
            type="password"
            autocomplete="off"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>{' '}
        <button type="submit">{t.signIn.submit}</button>
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
