// Refuses requests before routing, in the usual form: data that is not HTTP, requests that arrive too slowly, requests
// that Node and Fastify would refuse in their own words, too many headers, and compressed or deeply nested bodies.
import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { HTTP_STATUS } from '../../contract/error-codes.js';
import { isDeeperThan } from '../../kernel/json.js';
import { refusal, type RequestError } from '../../run/request-error.js';
import { envelope, explain, HTML, isPerson, NOTHING } from '../api/error-envelope.js';

// Node keeps two thousand headers and silently drops the rest.
const MAX_HEADERS = 200;

const CLIENT_ERRORS: Readonly<Record<string, RequestError>> = {
  HPE_HEADER_OVERFLOW: refusal('HEADERS_TOO_LARGE.bytes'),
  ERR_HTTP_REQUEST_TIMEOUT: refusal('REQUEST_TIMEOUT'),
};

// The latest response on a connection.
const answers = new WeakMap<Socket, ServerResponse>();

export function refuseEarly(app: FastifyInstance): void {
  app.server.on('request', ({ socket }, response) => void answers.set(socket, response));
  // Without this, Node responds itself, without an explanation.
  app.server.on('checkExpectation', ({ socket }) => refuse(socket, refusal('INVALID_ARGUMENT.expectation')));
  app.addHook('onRequest', async ({ raw: { rawHeaders, url = '' }, headers }) => {
    // An absolute URL names its own host, which would bypass the check of the Host header.
    if (!url.startsWith('/')) throw refusal('INVALID_ARGUMENT.url_form');
    // Node keeps the first header and drops the others; a proxy may have checked another one.
    const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
    if (hosts.length > 1) throw refusal('INVALID_ARGUMENT.two_hosts');
    if (rawHeaders.length > 2 * MAX_HEADERS) throw refusal('HEADERS_TOO_LARGE.count', { limit: MAX_HEADERS });
    const packed = headers['content-encoding'];
    if (packed !== undefined && packed.toLowerCase() !== 'identity')
      throw refusal('UNSUPPORTED_MEDIA_TYPE.compressed', { encoding: packed.slice(0, 40) });
  });
  // JSON.parse accepts any depth, but code that walks or serializes the value later would overflow the stack.
  app.addHook('preValidation', async ({ body }) => {
    if (isDeeperThan(body)) throw refusal('INVALID_ARGUMENT.body_nesting');
  });
}

// Data that is not HTTP is refused on the socket; a response that has started is only aborted.
export function refuseOnSocket(error: NodeJS.ErrnoException, socket: Socket): void {
  const answer = answers.get(socket);
  if (error.code === 'ECONNRESET' || !socket.writable || (answer?.headersSent && !answer.writableFinished))
    return void socket.destroy();
  refuse(socket, CLIENT_ERRORS[error.code ?? ''] ?? refusal('INVALID_ARGUMENT.not_http'));
}

function refuse(socket: Socket, error: RequestError): void {
  const body = JSON.stringify(envelope(error));
  const status = HTTP_STATUS[error.code];
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nContent-Length: ` +
      `${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

// A malformed URL matches no route and therefore has no error handler.
export function refuseAddress(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const refused = explain(error, request);
  if (isPerson(request)) return void reply.code(HTTP_STATUS[refused.code]).type(HTML).send(NOTHING);
  void reply
    .code(HTTP_STATUS[refused.code])
    .type('application/json')
    .send(JSON.stringify(envelope(refused)));
}
