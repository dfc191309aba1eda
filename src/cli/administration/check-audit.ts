// For doctor: whether the newest rows of the administrative journal are as they were written. `parley audit --verify`
// checks all of them.
import { verifyAudit, type AuditReader } from '../../store/audit.js';
import type { Finding } from './doctor.js';

const CHECKED_ROWS = 1000;

export async function checkAudit(reader: AuditReader): Promise<Finding[]> {
  const { ok, problem } = await verifyAudit(reader, CHECKED_ROWS);
  return ok
    ? []
    : [
        {
          name: 'audit',
          level: 'missing',
          text: `the administrative journal was altered: ${problem}. Check all of it: parley audit --verify`,
        },
      ];
}
