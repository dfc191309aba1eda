// The version that the rehearsal engine tells, and that its parser was proved on: both come from here, as both come
// with Parley.

export const REHEARSAL_VERSION = '1.0.0';
