// The thread in which JSON Schemas from outside are compiled and run. It holds nothing but the schemas it was sent, so
// that the main thread may end it at any moment. Plain JavaScript: a thread starts from a file, in tests from this one.
import { parentPort, workerData } from 'node:worker_threads';
import { Ajv2020 } from 'ajv/dist/2020.js';

/** @typedef {import('ajv').ErrorObject} ErrorObject */
/** @typedef {import('ajv').ValidateFunction} ValidateFunction */
/** @typedef {{ id: number, digest: string, schema: string, value?: string }} Job */
/**
 * @typedef {{ keyword: string, instancePath: string, schemaPath: string, params: Record<string, unknown>,
 *   propertyName: string | undefined }} Finding
 */
/** @typedef {{ problem: string, keyword?: string, detail?: string, errors?: Finding[] }} Unusable */

/** @type {Map<string, ValidateFunction>} */
const compiled = new Map();
const most = /** @type {{ most: number }} */ (workerData).most;
const OPTIONS = { strict: false, logger: /** @type {const} */ (false), validateFormats: false };
// One instance for all schemas: compiling the meta-schema is the expensive part.
const meta = new Ajv2020(OPTIONS);
const port = parentPort;
if (!port) throw new Error('check-thread.mjs runs only as a worker thread');

// The first use compiles the library itself; do it now, so that it does not count against the deadline of a check.
void meta.validateSchema({ type: 'object' });
port.on('message', (/** @type {Job} */ job) => port.postMessage({ id: job.id, ...check(job) }));
port.postMessage({ ready: true });

/** @param {Job} job */
function check({ digest, schema, value }) {
  const validate = compile(digest, schema);
  if (typeof validate !== 'function') return { unusable: validate };
  if (value === undefined) return {};
  try {
    // An asynchronous check would return a promise, which is neither true nor false.
    const fits = validate(JSON.parse(value));
    return fits === true ? {} : { findings: findingsOf(validate.errors) };
  } catch (error) {
    return { unusable: explain(error) };
  }
}

// Keeps the most recently used schemas compiled.
/**
 * @param {string} digest
 * @param {string} text
 * @returns {ValidateFunction | Unusable}
 */
function compile(digest, text) {
  const known = compiled.get(digest);
  if (known) {
    compiled.delete(digest);
    compiled.set(digest, known);
    return known;
  }
  try {
    const schema = JSON.parse(text);
    if (meta.validateSchema(schema) !== true) return { problem: 'form', errors: findingsOf(meta.errors) };
    // Without inlining, a chain of references that doubles at each step is compiled once per step.
    const validate = new Ajv2020({ ...OPTIONS, validateSchema: false, meta: false, inlineRefs: false }).compile(schema);
    if ('$async' in validate) return { problem: 'async' };
    compiled.set(digest, validate);
    for (const oldest of compiled.keys()) {
      if (compiled.size <= most) break;
      compiled.delete(oldest);
    }
    return validate;
  } catch (error) {
    return explain(error);
  }
}

/**
 * @param {unknown} error
 * @returns {Unusable}
 */
function explain(error) {
  if (error instanceof RangeError) return { problem: 'recursion' };
  if (error instanceof SyntaxError) return { problem: 'pattern' };
  const missing = error instanceof Error && 'missingRef' in error ? String(error.missingRef) : null;
  return missing === null ? { problem: 'other' } : { problem: 'reference', detail: missing.slice(0, 100) };
}

/**
 * @param {ErrorObject[] | null | undefined} errors
 * @returns {Finding[]}
 */
function findingsOf(errors) {
  return (errors ?? []).slice(0, 20).map(({ keyword, instancePath, schemaPath, params, propertyName }) => ({
    keyword,
    instancePath: instancePath.slice(0, 1000),
    schemaPath: schemaPath.slice(0, 1000),
    params: boundedParams(params),
    propertyName: propertyName?.slice(0, 200),
  }));
}

// An enum may have thousands of values, and a value may be as long as the schema.
/**
 * @param {Record<string, unknown>} params
 * @returns {Record<string, unknown>}
 */
function boundedParams(params) {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.slice(0, 50).map(bounded) : bounded(value),
    ]),
  );
}

/** @param {unknown} value */
function bounded(value) {
  const text = JSON.stringify(value) ?? '';
  return text.length <= 1000 ? value : `${text.slice(0, 200)}…`;
}
