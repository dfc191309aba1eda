// The console: a page where people answer their agents, and look at what those did.
import { render } from 'preact';
import { ParleyError } from '../../src/client/index.js';
import { App } from './app.js';
import { startNotices } from './state/notices.js';
import { watchInbox } from './state/inbox.js';
import { meet, refused } from './state/server.js';
import { useCodeInAddress } from './state/sign-in.js';
import './style.css';

const root = document.getElementById('app');
if (root) render(<App />, root);

// Until the server is there.
async function begin(): Promise<void> {
  if (!(await useCodeInAddress())) return;
  for (let pauseMs = 500; !(await meet()); pauseMs = Math.min(pauseMs * 2, 5000)) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  startNotices();
  // What went wrong in the page itself ends nothing.
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

void begin();
