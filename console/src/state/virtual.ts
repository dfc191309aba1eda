// A long list that draws only the rows on screen and measures them as they are drawn. It follows its end while the
// reader is there.
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type Range,
  type VirtualItem,
} from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

interface Options {
  readonly count: number;
  readonly keyOf: (index: number) => string;
  readonly estimate: (index: number) => number;
  // Rows that are always drawn, because the user may be typing in them.
  readonly pinned: () => readonly number[];
  readonly startsAtEnd: boolean;
}

export interface VirtualList {
  readonly box: { current: HTMLDivElement | null };
  readonly items: readonly VirtualItem[];
  readonly height: number;
  readonly measure: (element: HTMLElement | null) => void;
  readonly isAtEnd: boolean;
  readonly toEnd: () => void;
  readonly toIndex: (index: number) => void;
}

const NEAR_PX = 40;
const OVERSCAN = 6;

export function useVirtual({ count, keyOf, estimate, pinned, startsAtEnd }: Options): VirtualList {
  const box = useRef<HTMLDivElement>(null);
  const [, draw] = useState(0);
  const [isAtEnd, setAtEnd] = useState(startsAtEnd);
  const sticks = useRef(startsAtEnd);
  const virtualizer = useRef<Virtualizer<HTMLDivElement, HTMLElement> | null>(null);
  const options = {
    count,
    getItemKey: keyOf,
    estimateSize: estimate,
    overscan: OVERSCAN,
    rangeExtractor: (range: Range) => indexesOf(range, pinned()),
    getScrollElement: () => box.current,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw((before) => before + 1),
  };
  virtualizer.current ??= new Virtualizer(options);
  const list = virtualizer.current;
  list.setOptions(options);
  useLayoutEffect(() => list._didMount(), [list]);
  useLayoutEffect(() => {
    list._willUpdate();
    if (!box.current) return;
    if (sticks.current) box.current.scrollTop = box.current.scrollHeight;
    // The whole list is on screen.
    else if (box.current.scrollHeight <= box.current.clientHeight) setAtEnd(true);
    else if (isAtEnd) setAtEnd(false);
  });
  useEffect(() => {
    const { current } = box;
    if (!current) return undefined;
    let last = { top: current.scrollTop, height: current.scrollHeight };
    const onScroll = (): void => {
      const { scrollTop: top, scrollHeight: height, clientHeight } = current;
      // The list may have grown. Only scrolling up leaves the end, from the first pixel on; otherwise the list would
      // jump back.
      if (top < last.top && height >= last.height) sticks.current = false;
      else if (height - top - clientHeight < NEAR_PX) sticks.current = true;
      last = { top, height };
      setAtEnd(sticks.current);
    };
    const onWheel = ({ deltaY }: WheelEvent): void => {
      if (deltaY < 0 && current.scrollTop > 0) sticks.current = false;
    };
    current.addEventListener('scroll', onScroll, { passive: true });
    current.addEventListener('wheel', onWheel, { passive: true });
    return () => {
      current.removeEventListener('scroll', onScroll);
      current.removeEventListener('wheel', onWheel);
    };
  }, []);
  return {
    box,
    items: list.getVirtualItems(),
    height: list.getTotalSize(),
    measure: list.measureElement as (element: HTMLElement | null) => void,
    isAtEnd,
    toIndex: (index) => {
      sticks.current = false;
      setAtEnd(false);
      list.scrollToIndex(index, { align: 'center' });
    },
    toEnd: () => {
      sticks.current = true;
      setAtEnd(true);
      if (box.current) box.current.scrollTop = box.current.scrollHeight;
    },
  };
}

function indexesOf({ startIndex, endIndex, overscan, count }: Range, pinned: readonly number[]): number[] {
  const first = Math.max(0, startIndex - overscan);
  const last = Math.min(count - 1, endIndex + overscan);
  const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
  const more = pinned.filter((index) => index < count && (index < first || index > last));
  return more.length === 0 ? shown : [...shown, ...more].toSorted((a, b) => a - b);
}
