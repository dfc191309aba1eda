// One of several processes that open the same instance, or the same home, at the same time. Needs the build. A message
// {kind, folder, me, at} gets the response `held` or the code of the error; {kind: 'release'} releases it.
import { CodexHome } from '../../dist/machine/homes/codex-home.js';
import { lockAgent } from '../../dist/app-server/agent-lock.js';

let release = () => {};

async function contend({ kind, folder, me, at }) {
  // All at once, as nearly as possible.
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
