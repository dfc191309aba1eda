// Which model names a caller may give.
import { describe, expect, test } from 'vitest';
import { checkModel } from '../../src/run/model-name.js';

describe('checkModel', () => {
  test.each(['o3', 'gpt-5.1-codex', 'anthropic/claude:latest', 'a@b+c_d', 'x'.repeat(200)])('accepts %s', (name) => {
    expect(() => checkModel(name)).not.toThrow();
  });

  test.each(['', '-c', '--model', '.hidden', 'two words', 'línea', 'a\n', 'x'.repeat(201)])(
    'refuses %j and names it',
    (name) => {
      const problem = `${JSON.stringify(name.slice(0, 200))} is not a model name: it starts with a letter or a digit`;
      expect(() => checkModel(name)).toThrow(problem);
    },
  );
});
