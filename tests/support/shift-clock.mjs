// Loaded into a Node that a test starts (--import): its clock is wrong by CLOCK_SHIFT_MS, as that of a machine nobody
// has set. Timers and the time that only goes on are as they are.
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
