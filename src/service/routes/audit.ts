// The administrative journal, for operators.
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type * as z from 'zod';
import { auditPage, auditQuery, type auditEntry } from '../access/access-schemas.js';
import { safeSeq, viewAudit } from '../access/audit-view.js';
import { REFUSALS } from '../requests.js';
import type { RouteContext } from '../service.js';

export async function auditRoutes({ app: bare, access, attempts }: RouteContext): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();
  app.get(
    '/v1/audit',
    {
      schema: {
        operationId: 'readAudit',
        summary: 'The administrative journal, by seq',
        tags: ['access'],
        querystring: auditQuery,
        response: { 200: auditPage, ...REFUSALS },
      },
      config: { role: 'operator' },
    },
    async ({ query: { after, limit } }) => {
      await attempts.flush();
      const head = await access.auditHead();
      const rows = await access.listAudit(after, limit);
      const last = safeSeq(rows.at(-1)?.seq ?? after);
      return {
        entries: rows.map((row) => viewAudit(row) as z.input<typeof auditEntry>),
        next_after: rows.length < limit ? null : last,
        // A missing head.
        head: head ?? { seq: 0, digest: '' },
      };
    },
  );
}
