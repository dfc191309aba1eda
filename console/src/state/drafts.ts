// What was written and not sent yet, by what it belongs to: it is still there when one comes back, on whatever page,
// also after a reload.
const KEY = 'parley.drafts';
const drafts = new Map<string, unknown>(read());

export function recall<T>(key: string, otherwise: T): T {
  return (drafts.get(key) as T | undefined) ?? otherwise;
}

export function keep(key: string, value: unknown): void {
  drafts.set(key, value);
  write();
}

export function drop(key: string): void {
  for (const each of drafts.keys()) if (each === key || each.startsWith(`${key}/`)) drafts.delete(each);
  write();
}

function read(): [string, unknown][] {
  try {
    return Object.entries(JSON.parse(sessionStorage.getItem(KEY) ?? '{}') as Record<string, unknown>);
  } catch {
    return [];
  }
}

// Of this window only; a browser that keeps nothing forgets it with the page.
function write(): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(Object.fromEntries(drafts)));
  } catch {
    // Too much, or not allowed.
  }
}
