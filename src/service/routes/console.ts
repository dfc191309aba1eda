// Serves the built console: the same page for every path, with its assets. The page may load nothing else.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RouteContext } from '../service.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
};
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
  // Only the policy of console/src/parts/markdown.tsx creates HTML.
  "; require-trusted-types-for 'script'; trusted-types parley-markdown";
const PAGES = ['/', '/inbox', '/runs', '/runs/:id', '/new', '/engines'];
// The build puts a hash of the content into these names.
const FOR_EVER = 'public, max-age=31536000, immutable';

interface Piece {
  readonly body: Buffer;
  readonly type: string;
  readonly etag: string;
}

export async function consoleRoutes({ app, consoleDir }: RouteContext): Promise<void> {
  const pieces = readPieces(consoleDir);
  const page = pieces.get('/index.html');
  // The console was not built, for instance when Parley runs from its sources.
  if (!page)
    return void app.get('/', { schema: { hide: true } }, async (_request, reply) => reply.redirect('/docs', 303));
  const options = { schema: { hide: true }, config: { role: 'anyone' } } as const;
  for (const path of PAGES)
    app.get(path, options, async (request, reply) =>
      send(request, reply.header('content-security-policy', POLICY).header('cache-control', 'no-cache'), page),
    );
  for (const [path, piece] of pieces) {
    if (piece === page) continue;
    const cache = path.startsWith('/assets/') ? FOR_EVER : 'no-cache';
    app.get(path, options, async (request, reply) => send(request, reply.header('cache-control', cache), piece));
  }
}

function send({ headers }: FastifyRequest, reply: FastifyReply, { body, type, etag }: Piece): FastifyReply {
  reply.header('etag', etag);
  return headers['if-none-match'] === etag ? reply.code(304).send() : reply.type(type).send(body);
}

// Kept in memory: it is small, and an update of the files must not mix two builds.
function readPieces(folder: string | null): Map<string, Piece> {
  const pieces = new Map<string, Piece>();
  if (folder === null || !existsSync(folder)) return pieces;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const type = TYPES[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const body = readFileSync(path);
    pieces.set(path.slice(folder.length).replaceAll('\\', '/'), {
      body,
      type,
      etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
    });
  }
  return pieces;
}
