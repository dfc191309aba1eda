// The codes that only a run fails with whose session needs its process (contract/sticky.json).
export type { StickyErrorCode as WaitErrorCode } from '../../contract/error-codes.js';
