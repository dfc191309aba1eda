// parley token sessions: lists the browsers that are signed in, and ends sessions. Works beside a running server.
import { toTimestamp } from '../../kernel/clock.js';
import { refusal } from '../../run/request-error.js';
import { renderTable } from '../../terminal/table.js';
import { openReader, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { styleOf } from '../style.js';
import { withPlace } from './token-place.js';
import { texts } from '../language/language.js';

export interface SessionsOptions extends DataOption {
  readonly end?: string;
  readonly json?: boolean;
}

const PAGE = 200;

export async function sessionsCommand({ end, json, ...options }: SessionsOptions, io: Io): Promise<number> {
  if (end !== undefined) {
    await withPlace(options, io, async ({ access, trace }) => {
      if (!(await access.endSession(end, { ...trace, type: 'session.ended', body: { session_id: end } })))
        throw refusal('INVALID_ARGUMENT.session_unknown', { session: end });
    });
    io.stdout.write(
      json ? `${JSON.stringify({ type: 'session_ended', session_id: end })}\n` : `${texts().say.sessionEnded(end)}\n`,
    );
    return EXIT.ok;
  }
  const sessions = await listSessions(options, io);
  if (json) for (const session of sessions) io.stdout.write(`${JSON.stringify({ type: 'session', ...session })}\n`);
  else if (sessions.length === 0) io.stderr.write(`${texts().say.noSessions}\n`);
  else {
    const rows = sessions.map(
      ({ session_id: id, person, token, last_used_at: used, ends_at: ends, address, user_agent: agent }) => [
        id,
        person,
        token ?? 'operator',
        used,
        ends,
        address ?? '',
        agent ?? '',
      ],
    );
    const headers = texts().say.sessionHeaders;
    const columns = [
      { header: headers.session, whole: true },
      { header: headers.person },
      { header: headers.token },
      { header: headers.used },
      { header: headers.ends },
      { header: headers.address },
      { header: headers.browser, droppable: true },
    ];
    io.stdout.write(
      renderTable(rows, columns, { ...styleOf(io), width: io.terminal.stdout ? styleOf(io).width : Infinity }),
    );
  }
  return EXIT.ok;
}

interface ListedSession {
  readonly session_id: string;
  readonly person: string;
  readonly token: string | null;
  readonly created_at: string;
  readonly last_used_at: string;
  readonly ends_at: string;
  readonly address: string | null;
  readonly user_agent: string | null;
}

// Those that have not ended; the number of a token's sessions is bounded, so all fit in memory.
async function listSessions(options: DataOption, io: Io): Promise<ListedSession[]> {
  const data = await openReader(options, io);
  const sessions: ListedSession[] = [];
  if (!data) return sessions;
  try {
    for (let after = ''; ;) {
      const page = await data.access.listSessions({ after, limit: PAGE });
      for (const {
        session_id: id,
        person,
        token,
        created_at: made,
        last_used_at: used,
        ends_at: ends,
        address,
        user_agent: agent,
      } of page) {
        if (ends <= io.clock.now()) continue;
        sessions.push({
          session_id: id,
          person,
          token,
          created_at: toTimestamp(made),
          last_used_at: toTimestamp(used),
          ends_at: toTimestamp(ends),
          address,
          user_agent: agent,
        });
      }
      if (page.length < PAGE) break;
      after = page.at(-1)?.session_id ?? '';
    }
    return sessions;
  } finally {
    await data.close();
  }
}
