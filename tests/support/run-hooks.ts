// A setup file of Vitest: runs the cleanup of the helper modules (hooks.ts) in every test file.
import { afterAll, afterEach } from 'vitest';
import { cleanUpFile, cleanUpTest } from './hooks.js';

afterEach(cleanUpTest);
// A slow disk needs time to delete the folders of many tests.
afterAll(cleanUpFile, 60_000);
