// Narrows an event of the conversation to its type.
import type { FcmpData, FcmpEvent, FcmpType } from '../fcmp/event.js';

/** Whether an event has this type; narrows `data` to the data of that type. */
export function isType<T extends FcmpType>(
  event: FcmpEvent,
  type: T,
): event is FcmpEvent & { readonly type: T; readonly data: FcmpData[T] } {
  return event.type === type;
}
