// Loaded into a Node that a test starts (--import): SIGUSR2 makes it crash as CRASH says, with text that a terminal
// would obey.
const ways = {
  throw: () => {
    throw new Error('a defect \u001b]0;owned\u0007\u009b31m');
  },
  reject: () => void Promise.reject(new Error('a rejection \u001b]0;owned\u0007')),
  // Nothing of the process answers any more, not even its timers.
  hang: () => {
    setImmediate(() => {
      for (;;);
    });
    throw new Error('a defect before the event loop hangs');
  },
};

if (process.argv.some((argument) => argument === 'serve' || argument === 'work'))
  process.on('SIGUSR2', () => ways[process.env.CRASH]());
