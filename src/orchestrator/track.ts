// Keeps a piece of work in a set for as long as it is under way, so that whoever closes can wait for it.

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
