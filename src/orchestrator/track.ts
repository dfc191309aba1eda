// Keeps a set of the work that is under way, so that somebody can wait for all of it.
export async function track<T>(underWay: Set<Promise<void>>, work: Promise<T>): Promise<T> {
  const over = work.then(() => {}, () => {});
  underWay.add(over);
  try {
    return await work;
  } finally {
    underWay.delete(over);
  }
}
