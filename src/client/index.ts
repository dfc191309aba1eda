// The client of a Parley server, for Node and browsers: runs, answers, the inbox, and streams that reconnect. Every
// exported member has JSDoc, because only that reaches the .d.ts files (tests/docs/public-api.test.ts).
export { createClient, type ParleyClient } from './client.js';
export type * from './call-types.js';
export { answerTo, type AnswerReply, type FinishReply, type Reply } from './reply-types.js';
export type { Reply as UncheckedReply } from '../commands/reply.js';
export type { AuditEntry, AuditPage, BrowserSession, SessionPage, SignedIn, SignInLink } from './access-types.js';
export { isType } from './is-type.js';
export { ParleyError } from './parley-error.js';
export type { FcmpEvent } from '../fcmp/event.js';
export type { RaspEvent } from '../rasp/event.js';
export type { CreateRunRequest } from '../commands/create-request.js';
export type * from '../journal/question-view.js';
export type { InteractionView, RunSummaryView, RunView } from '../journal/run-view.js';
export type { ShortenedPart } from '../store/summary-reader.js';
export type { EngineReport } from '../engines/engine-report.js';
export type { ProfileTotals } from '../store/store.js';
