// Keeps a promise in a set while it is pending, so that close() can wait for it.

export async function track<T>(pending: Set<Promise<void>>, work: Promise<T>): Promise<T> {
  const over = work.then(
    () => {},
    () => {},
  );
  pending.add(over);
  try {
    return await work;
  } finally {
    pending.delete(over);
  }
}
