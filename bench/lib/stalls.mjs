// How long work in this process takes, and the longest time for which the event loop stood still meanwhile.
import { now } from './figures.mjs';

export async function watch(work) {
  let stall = 0;
  let isOver = false;
  let last = await nextTick();
  const began = last;
  const tick = () => {
    stall = Math.max(stall, now() - last);
    last = now();
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  const ms = now() - began;
  isOver = true;
  return { ms, stall: Math.max(stall, now() - last) };
}

// How often work is done before it is measured, so that it is compiled.
export const WARM_UPS = 5;

// The same work several times: every duration, and the longest stall of all.
export async function watchEach(count, work) {
  const results = [];
  for (let number = 0; number < WARM_UPS; number += 1) await work(count + number);
  for (let number = 0; number < count; number += 1) results.push(await watch(() => work(number)));
  return { values: results.map(({ ms }) => ms), stall: Math.max(...results.map(({ stall }) => stall)) };
}

function nextTick() {
  return new Promise((resolve) => void setImmediate(() => resolve(now())));
}

// The same for work in another process: durations only.
export async function timeEach(count, work) {
  const values = [];
  for (let number = 0; number < count; number += 1) {
    const began = now();
    await work(number);
    values.push(now() - began);
  }
  return values;
}
