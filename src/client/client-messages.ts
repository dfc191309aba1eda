// Generated from contract/errors.json by `npm run generate`. Do not edit.

// The messages of errors that a client itself creates.
export const CLIENT_MESSAGES = {
  "UNREACHABLE.no_connection": "The server cannot be reached: {reason}.",
  "UNREACHABLE.no_connection_to": "The server at {url} cannot be reached: {reason}.",
  "UNREACHABLE.cut_off": "The response of the server broke off: {reason}.",
  "UNREACHABLE.closed": "The connection was closed.",
  "UNREACHABLE.lost": "The connection was lost: {reason}.",
  "UNREACHABLE.no_result": "The response ended before the result of the check.",
  "INTERNAL.response_not_json": "The response to {method} {path} is not JSON.",
  "INTERNAL.event_order": "Event {seq} came after event {last}.",
  "INTERNAL.response_status": "The server answered {status}."
} as const;
