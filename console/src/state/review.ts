// Whether all of an approval was on the screen. It counts as seen once every part of its region was visible, in
// whatever order. What was seen stays seen, on whatever page, for as long as this page is open.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { addPart, isWhole, type Part } from './coverage.js';

// Less than a line of text: positions on a screen are rounded.
const GAP_PX = 4;

const seen = signal<ReadonlySet<string>>(new Set());

export function isSeen(interactionId: string): boolean {
  return seen.value.has(interactionId);
}

type Region = { readonly current: HTMLElement | null };

export function useReview(interactionId: string, isWanted: boolean, region: Region): void {
  useEffect(() => {
    const element = region.current;
    if (!isWanted || seen.peek().has(interactionId) || !element) return undefined;
    let parts: readonly Part[] = [];
    let frame = 0;
    const measure = (): void => {
      frame = 0;
      const { top, height } = element.getBoundingClientRect();
      if (document.hidden || height === 0) return;
      const gap = GAP_PX / height;
      const visible = { from: Math.max(0, -top) / height, to: Math.min(height, window.innerHeight - top) / height };
      parts = addPart(parts, visible, gap);
      if (!isWhole(parts, gap)) return;
      stop();
      seen.value = new Set(seen.peek()).add(interactionId);
    };
    // Once in a frame, however many events come.
    const look = (): void => {
      frame ||= requestAnimationFrame(measure);
    };
    const size = new ResizeObserver(look);
    const stop = (): void => {
      cancelAnimationFrame(frame);
      size.disconnect();
      document.removeEventListener('scroll', look, { capture: true });
      document.removeEventListener('visibilitychange', look);
      window.removeEventListener('resize', look);
    };
    size.observe(element);
    document.addEventListener('scroll', look, { capture: true, passive: true });
    document.addEventListener('visibilitychange', look);
    window.addEventListener('resize', look);
    look();
    return stop;
  }, [interactionId, isWanted]);
}
