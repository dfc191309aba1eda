// Chooses the page by the address, so that links, reload and Back work.
import { computed, signal } from '@preact/signals';

export type Route =
  | { readonly page: 'inbox' }
  | { readonly page: 'runs' }
  | { readonly page: 'new' }
  | { readonly page: 'engines' }
  | { readonly page: 'run'; readonly id: string }
  | { readonly page: 'nowhere'; readonly path: string };

const address = signal(location.pathname + location.search);
addEventListener('popstate', () => (address.value = location.pathname + location.search));

export const route = computed<Route>(() => routeOf(new URL(address.value, location.origin).pathname));
export const query = computed(() => new URL(address.value, location.origin).searchParams);

function routeOf(path: string): Route {
  if (path === '/' || path === '/inbox') return { page: 'inbox' };
  if (path === '/runs') return { page: 'runs' };
  if (path === '/new') return { page: 'new' };
  if (path === '/engines') return { page: 'engines' };
  const id = /^\/runs\/([^/]+)$/.exec(path)?.[1];
  return id === undefined ? { page: 'nowhere', path } : { page: 'run', id: decodeURIComponent(id) };
}

export function go(to: string): void {
  if (to === address.value) return;
  history.pushState(null, '', to);
  address.value = to;
  scrollTo(0, 0);
}

// Changes the query of the address. This adds a step to the history only for something that covers the page (`opens`).
export function refine(
  changes: Readonly<Record<string, string | null>>,
  { opens = false }: { readonly opens?: boolean } = {},
): void {
  const url = new URL(address.value, location.origin);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (opens) history.pushState({ opened: true }, '', url.pathname + url.search);
  else history.replaceState(history.state, '', url.pathname + url.search);
  address.value = url.pathname + url.search;
}

// Goes back if opening added a step to the history. Otherwise removes it from the address.
export function closeOpened(changes: Readonly<Record<string, null>>): void {
  if ((history.state as { opened?: boolean } | null)?.opened) history.back();
  else refine(changes);
}
