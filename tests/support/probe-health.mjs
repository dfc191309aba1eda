// A separate process that requests /healthz repeatedly, and prints the slow responses as JSON when its stdin ends.
import { Agent, get } from 'node:http';

const [url] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const slow = [];
let asked = 0;
let longest = 0;
let isOver = false;

function ask() {
  if (isOver) return;
  const startedAt = performance.now();
  const next = () => {
    const ms = performance.now() - startedAt;
    asked += 1;
    longest = Math.max(longest, ms);
    if (ms > 50) slow.push({ at: performance.timeOrigin + startedAt + ms, ms: Math.round(ms) });
    setTimeout(ask, 10);
  };
  get(`${url}/healthz`, { agent }, (response) => response.resume().once('end', next)).once('error', next);
}

ask();
process.stdin.resume().once('end', () => {
  isOver = true;
  process.stdout.write(JSON.stringify({ asked, longest: Math.round(longest), slow }), () => process.exit(0));
});
