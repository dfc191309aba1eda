// Whether all of an approval was on the screen. Marks stand between its lines; it counts as seen once each of them was
// visible. What was seen stays seen, on whatever page, for as long as this page is open.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

export const MARK = 'data-review-mark';

const seen = signal<ReadonlySet<string>>(new Set());

export function isSeen(interactionId: string): boolean {
  return seen.value.has(interactionId);
}

type Box = { readonly current: HTMLElement | null };

export function useReview(interactionId: string, isWanted: boolean, box: Box): void {
  useEffect(() => {
    if (!isWanted || seen.peek().has(interactionId) || !box.current) return undefined;
    const left = new Set<Element>(box.current.querySelectorAll(`[${MARK}]`));
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        left.delete(target);
      }
      if (left.size > 0) return;
      observer.disconnect();
      seen.value = new Set(seen.peek()).add(interactionId);
    });
    for (const mark of left) observer.observe(mark);
    return () => observer.disconnect();
  }, [interactionId, isWanted]);
}
