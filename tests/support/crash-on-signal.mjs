// Loaded into a Node process of a test (--import): SIGUSR2 makes it crash as CRASH says, with text that contains
// terminal escapes.
const ways = {
  throw: () => {
    throw new Error('a defect \u001b]0;owned\u0007\u009b31m');
  },
  reject: () => void Promise.reject(new Error('a rejection \u001b]0;owned\u0007')),
  // Blocks the whole process, including its timers.
  hang: () => {
    setImmediate(() => {
      for (;;);
    });
    throw new Error('a defect before the event loop hangs');
  },
};

if (process.argv.some((argument) => argument === 'serve' || argument === 'work'))
  process.on('SIGUSR2', () => ways[process.env.CRASH]());
