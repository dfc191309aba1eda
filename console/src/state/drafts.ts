// Texts that were written and not sent yet, by the question or form they belong to. They survive changes of the page
// and reloads.
const KEY = 'parley.drafts';
const drafts = new Map<string, unknown>(read());

export function recall<T>(key: string, fallback: T): T {
  return (drafts.get(key) as T | undefined) ?? fallback;
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

// Stored for this window only. A browser without storage loses drafts with the page.
function write(): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(Object.fromEntries(drafts)));
  } catch {
    // The storage is full or not allowed.
  }
}
