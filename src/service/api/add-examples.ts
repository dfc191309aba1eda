// Adds the examples of examples.ts to the operations of the OpenAPI document.
import type { RunContract } from '../../run/waiting/run-contract.js';
import { envelope } from './error-envelope.js';
import { NO_TOKEN, one, operationExamples, SHUTTING_DOWN, type Examples } from './examples.js';

interface Content {
  readonly content?: Readonly<Record<string, object>>;
}
interface Operation {
  readonly operationId?: string;
  readonly requestBody?: Content;
  readonly responses?: Readonly<Record<string, Content>>;
}

// Adds the examples to every operation of the document.
export function addExamples<D extends { readonly paths?: object }>(document: D, contract: RunContract): D {
  const known = operationExamples(contract);
  const describe = (operation: Operation): Operation => {
    const { request = {}, response = {}, refused = NO_TOKEN } = known[operation.operationId ?? ''] ?? {};
    const errors: Record<string, object> = { '4XX': envelope(refused), '5XX': SHUTTING_DOWN };
    const responses = Object.entries(operation.responses ?? {}).map(([status, described]) => {
      const error = errors[status];
      return [status, fill(described, error ? { 'application/json': one('A refusal', error) } : response)] as const;
    });
    return {
      ...operation,
      ...(operation.requestBody ? { requestBody: fill(operation.requestBody, { 'application/json': request }) } : {}),
      responses: Object.fromEntries(responses),
    };
  };
  const paths = Object.entries((document.paths ?? {}) as Record<string, Record<string, Operation>>).map(
    ([path, methods]) =>
      [
        path,
        Object.fromEntries(Object.entries(methods).map(([method, operation]) => [method, describe(operation)])),
      ] as const,
  );
  return { ...document, paths: Object.fromEntries(paths) };
}

function fill(described: Content, byType: Readonly<Record<string, Examples>>): Content {
  if (!described.content) return described;
  const content = Object.entries(described.content).map(([type, media]) => {
    const examples = byType[type];
    return [type, examples ? { ...media, examples } : media] as const;
  });
  return { ...described, content: Object.fromEntries(content) };
}
