// A point in what is to be approved that has to come on the screen before it counts as seen.
import type { JSX } from 'preact';
import { MARK } from '../state/review.js';

export function ReviewMark(): JSX.Element {
  return <i class="review-mark" aria-hidden="true" {...{ [MARK]: '' }} />;
}
