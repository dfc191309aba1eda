// Tells an event of the conversation by its type, and its data with it.
import type { FcmpData, FcmpEvent, FcmpType } from '../fcmp/event.js';

export function isType<T extends FcmpType>(
  event: FcmpEvent,
  type: T,
): event is FcmpEvent & { readonly type: T; readonly data: FcmpData[T] } {
  return event.type === type;
}
