// Message templates: values are filled in by name, and a value cannot change the template.
import { expect, test } from 'vitest';
import { fillTemplate } from '../../src/kernel/fill-template.js';

test('every occurrence of a name becomes its value', () => {
  expect(fillTemplate('{a} and {b_c}, then {a}.', { a: 1, b_c: 'two' })).toBe('1 and two, then 1.');
});

test('a value that looks like a template or a replacement pattern stays as it is', () => {
  expect(fillTemplate('{a}{b}', { a: '{b}', b: '$&$1' })).toBe('{b}$&$1');
});

test.each([{}, { other: 1 }])('a missing value is a defect: %j', (values) => {
  expect(() => fillTemplate('There is no run {run}.', values)).toThrow('{run}');
});

test('a name of Object.prototype is no value', () => {
  expect(() => fillTemplate('{constructor}', {})).toThrow('{constructor}');
});
