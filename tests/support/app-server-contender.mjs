// One of several processes that want the same instance, or the same home, in the same moment. Needs the build.
// A message {kind, folder, me, at} is answered with `held` or the code of the error; {kind: 'release'} gives back.
import { CodexHome } from '../../dist/machine/homes/codex-home.js';
import { lockAgent } from '../../dist/app-server/agent-lock.js';

let release = () => {};

async function contend({ kind, folder, me, at }) {
  // All at once, as near as can be.
  while (Date.now() < at);
  try {
    if (kind === 'home') await CodexHome.open(folder, { owner: me, user: { home: me, env: {} } });
    else release = await lockAgent(folder, process.pid);
    return 'held';
  } catch (error) {
    return error.code ?? String(error);
  }
}

process.on('message', async (message) => {
  if (message.kind !== 'release') return process.send(await contend(message));
  release();
  release = () => {};
  return process.send('released');
});
process.send('ready');
