// The console: a page where people answer their agents and see what the agents did.
import { render } from 'preact';
import { ParleyError } from '../../src/client/index.js';
import { App } from './app.js';
import { startNotices } from './state/notices.js';
import { watchInbox } from './state/inbox.js';
import { loadMe, refused } from './state/server.js';
import { hasCodeInAddress, useCodeInAddress } from './state/sign-in.js';
import './style.css';

const root = document.getElementById('app');
if (root) render(<App />, root);

// Retries until the server is reachable.
async function start(): Promise<void> {
  if (!(await useCodeInAddress())) return;
  for (let pauseMs = 500; !(await loadMe()); pauseMs = Math.min(pauseMs * 2, 5000)) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  startNotices();
  // An error in the page itself must not end the updates.
  for (;;) {
    try {
      await watchInbox();
    } catch (error) {
      if (error instanceof ParleyError && (error.status === 401 || error.status === 403)) return refused(error);
      console.error(error);
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

void start();

// A link that is opened in this tab changes only the fragment of the address.
addEventListener('hashchange', () => {
  if (hasCodeInAddress()) void useCodeInAddress().then((isSignedIn) => isSignedIn && location.reload());
});
