// Whether all of an approval was on the screen. It is seen once every part of its region was visible, in any order. It
// stays seen on all pages until the console is closed.
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
    // Measures at most once per frame.
    const schedule = (): void => {
      frame ||= requestAnimationFrame(measure);
    };
    const size = new ResizeObserver(schedule);
    const stop = (): void => {
      cancelAnimationFrame(frame);
      size.disconnect();
      document.removeEventListener('scroll', schedule, { capture: true });
      document.removeEventListener('visibilitychange', schedule);
      window.removeEventListener('resize', schedule);
    };
    size.observe(element);
    document.addEventListener('scroll', schedule, { capture: true, passive: true });
    document.addEventListener('visibilitychange', schedule);
    window.addEventListener('resize', schedule);
    schedule();
    return stop;
  }, [interactionId, isWanted]);
}
