// Resolves in a later event-loop tick, after other work that is due. A resolved promise does not do that: its
// continuation runs before any other work.
export function yieldToOthers(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

// Returns the items of a list one by one. Other work runs after every group of this size.
export async function* inGroups<T>(items: readonly T[], size: number): AsyncGenerator<T, void> {
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % size === 0) await yieldToOthers();
    yield item;
  }
}
