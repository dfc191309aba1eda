import { afterEach, expect, test, vi } from 'vitest';
import { paint } from '../../src/terminal/style.js';

afterEach(() => vi.unstubAllEnvs());

test('without colour there is no escape', () => {
  for (const ink of ['bold', 'dim', 'red', 'green', 'yellow', 'cyan'] as const)
    expect(paint({ colour: false }, ink, 'x')).toBe('x');
});

test('with colour there is one, whatever the environment says: the caller has decided', () => {
  vi.stubEnv('NO_COLOR', '1');
  expect(paint({ colour: true }, 'red', 'x')).toBe('\u001b[31mx\u001b[39m');
  expect(paint({ colour: true }, 'dim', '')).toBe('');
});
