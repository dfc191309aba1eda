// What was written and not sent yet, by what it belongs to: it is still there when one comes back, on whatever page.
const drafts = new Map<string, unknown>();

export function recall<T>(key: string, otherwise: T): T {
  return (drafts.get(key) as T | undefined) ?? otherwise;
}

export function keep(key: string, value: unknown): void {
  drafts.set(key, value);
}

export function drop(key: string): void {
  for (const each of drafts.keys()) if (each === key || each.startsWith(`${key}/`)) drafts.delete(each);
}
