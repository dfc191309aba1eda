// What is refused before a route is looked for, in the one form: what is not HTTP, what comes too slowly, what Node and
// Fastify would refuse in words of their own, more headers than anybody needs, bodies that are packed or nested too
// deeply.
import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { HTTP_STATUS, type RequestErrorCode } from '../../contract/error-codes.js';
import { isDeeperThan } from '../../kernel/json.js';
import { RequestError } from '../../run/request-error.js';
import { envelope, explain, HTML, isPerson, NOTHING } from '../api/error-envelope.js';

// Node keeps two thousand and drops the rest without a word.
const MAX_HEADERS = 200;

const CLIENT_ERRORS: Readonly<Record<string, readonly [RequestErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['HEADERS_TOO_LARGE', 'the headers are larger than this server takes'],
  ERR_HTTP_REQUEST_TIMEOUT: ['REQUEST_TIMEOUT', 'the request did not arrive in time'],
};

// The latest answer on a connection.
const answers = new WeakMap<Socket, ServerResponse>();

export function refuseEarly(app: FastifyInstance): void {
  app.server.on('request', ({ socket }, response) => void answers.set(socket, response));
  // Without this Node answers for us, and says nothing.
  app.server.on('checkExpectation', ({ socket }) =>
    refuse(socket, 'INVALID_ARGUMENT', 'an expectation other than 100-continue cannot be met'),
  );
  app.addHook('onRequest', async ({ raw: { rawHeaders, url = '' }, headers }) => {
    // A whole address names a host of its own, past the one that is checked.
    if (!url.startsWith('/')) throw new RequestError('INVALID_ARGUMENT', 'the address of a request begins with /');
    // Node keeps the first and drops the others; a proxy may have checked another one.
    const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
    if (hosts.length > 1) throw new RequestError('INVALID_ARGUMENT', 'The request has more than one Host header.');
    if (rawHeaders.length > 2 * MAX_HEADERS)
      throw new RequestError('HEADERS_TOO_LARGE', `more than ${MAX_HEADERS} headers`);
    const packed = headers['content-encoding'];
    if (packed !== undefined && packed.toLowerCase() !== 'identity')
      throw new RequestError(
        'UNSUPPORTED_MEDIA_TYPE',
        `the body is compressed (${packed.slice(0, 40)}); send it as it is`,
      );
  });
  // Parsed at any depth, but whoever walks or writes it later would not come back.
  app.addHook('preValidation', async ({ body }) => {
    if (isDeeperThan(body)) throw new RequestError('INVALID_ARGUMENT', 'the body is nested too deeply');
  });
}

// What is not even HTTP is refused on the bare socket; an answer that has begun is only broken off.
export function refuseOnSocket(error: NodeJS.ErrnoException, socket: Socket): void {
  const answer = answers.get(socket);
  if (error.code === 'ECONNRESET' || !socket.writable || (answer?.headersSent && !answer.writableFinished))
    return void socket.destroy();
  const [code, message] =
    CLIENT_ERRORS[error.code ?? ''] ?? (['INVALID_ARGUMENT', 'this is not a request that can be read'] as const);
  refuse(socket, code, message);
}

function refuse(socket: Socket, code: RequestErrorCode, message: string): void {
  const body = JSON.stringify(envelope({ code, message }));
  const status = HTTP_STATUS[code];
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nContent-Length: ` +
      `${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

// An address that cannot be read has no route, and so no handler of errors.
export function refuseAddress(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = explain(error, request);
  if (isPerson(request)) return void reply.code(HTTP_STATUS[refusal.code]).type(HTML).send(NOTHING);
  void reply
    .code(HTTP_STATUS[refusal.code])
    .type('application/json')
    .send(JSON.stringify(envelope(refusal)));
}
