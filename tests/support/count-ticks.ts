// Counts the ticks of the event loop while other work runs. `at` is the number of the current one.
export function countTicks(): { readonly at: number; stop(): void } {
  const counter = { at: 0, isOver: false, stop: () => void (counter.isOver = true) };
  const next = (): void => {
    counter.at += 1;
    if (!counter.isOver) setImmediate(next);
  };
  setImmediate(next);
  return counter;
}
