// The client of a Parley server, for Node and browsers: runs, answers, the inbox, and streams that come back by
// themselves.
export {
  createClient,
  type ClientOptions,
  type InboxChange,
  type InboxItem,
  type ParleyClient,
  type RunFilter,
  type RunsChange,
  type InboxFilter,
  type StreamOptions,
} from './client.js';
export type { AuditEntry, AuditPage, BrowserSession, SessionPage, SignedIn, SignInLink } from './access-types.js';
export { isType } from './is-type.js';
export { ParleyError } from './parley-error.js';
export type { FcmpEvent } from '../fcmp/event.js';
export type { RaspEvent } from '../rasp/event.js';
export type { CreateRunRequest } from '../commands/create-request.js';
export type { Reply } from '../commands/reply.js';
export type { InteractionView, RunSummaryView, RunView } from '../journal/run-view.js';
export type { ShortenedPart } from '../store/summary-reader.js';
export type { EngineReport } from '../engines/engine-report.js';
export type { ProfileTotals } from '../store/store.js';
