// Loaded into a Node process of a test (--import): its clock is wrong by CLOCK_SHIFT_MS, like that of a misconfigured
// machine. Timers and the monotonic clock are unchanged.
const shiftMs = Number(process.env.CLOCK_SHIFT_MS ?? 0);

if (shiftMs !== 0) {
  const Right = Date;
  const now = () => Right.now() + shiftMs;
  globalThis.Date = class extends Right {
    constructor(...args) {
      if (args.length === 0) super(now());
      else super(...args);
    }

    static now() {
      return now();
    }
  };
}
