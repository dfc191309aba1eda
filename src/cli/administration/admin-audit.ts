// parley audit: reads the administrative journal, and checks that none of its rows was changed, removed or reordered.
import { viewAudit, type AuditView } from '../../service/access/audit-view.js';
import { verifyAudit } from '../../store/audit.js';
import { safeText } from '../../terminal/safe-text.js';
import { paint } from '../../terminal/style.js';
import { openReader, type DataOption } from '../data-dir.js';
import { EXIT, LineWriter, type Io } from '../io.js';
import { sayMessage, texts } from '../language/language.js';
import { styleOf } from '../style.js';

export interface AuditOptions extends DataOption {
  readonly limit: number;
  readonly all?: boolean;
  readonly after?: number;
  readonly verify?: boolean;
  readonly json?: boolean;
}

const PAGE = 500;

export async function auditCommand(options: AuditOptions, io: Io): Promise<number> {
  const { audit: t } = texts();
  const data = await openReader(options, io);
  if (!data) {
    io.stderr.write(`${t.empty}\n`);
    return EXIT.ok;
  }
  try {
    if (options.verify) {
      const { ok, rows, problem, message } = await verifyAudit(data.access);
      const style = styleOf(io);
      if (options.json) io.stdout.write(`${JSON.stringify({ type: 'audit_verified', ok, rows, problem })}\n`);
      else
        io.stdout.write(
          ok
            ? `${t.rows(paint(style, 'green', t.unchanged), rows)}\n`
            : `${t.problem(paint(style, 'red', t.changed), message ? sayMessage(message) : String(problem))}\n`,
        );
      return ok ? EXIT.ok : EXIT.failed;
    }
    const head = await data.access.auditHead();
    if (head === null) io.stderr.write(`${t.noHead}\n`);
    const last = head?.seq ?? 0;
    const first = options.after ?? (options.all ? 0 : Math.max(0, last - options.limit));
    const most = options.all ? Infinity : options.limit;
    const writer = new LineWriter(io);
    let shown = 0;
    for (let after = first; shown < most;) {
      const rows = await data.access.listAudit(after, Math.min(PAGE, most - shown));
      for (const row of rows)
        writer.addLine(
          options.json ? JSON.stringify({ type: 'audit', entry: viewAudit(row) }) : render(viewAudit(row)),
        );
      await writer.flush();
      shown += rows.length;
      after = rows.at(-1)?.seq ?? after;
      // Beyond the largest safe integer no row can be addressed exactly.
      if (rows.length === 0 || !Number.isSafeInteger(after)) break;
    }
    if (shown === 0 && !options.json) io.stderr.write(`${last === 0 ? t.empty : t.noRowAfter(first, last)}\n`);
    return EXIT.ok;
  } finally {
    await data.close();
  }
}

function render({ seq, ts, type, actor, address, body }: AuditView): string {
  const who =
    typeof actor?.['name'] === 'string'
      ? `${actor['name']}${typeof actor['token'] === 'string' ? ` (${actor['token']})` : ''}`
      : '-';
  return safeText(`${seq}  ${ts}  ${type}  ${who}  ${address ?? '-'}  ${JSON.stringify(body)}`).replaceAll('\n', ' ');
}
