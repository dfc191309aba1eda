// For doctor: whether the newest rows of the administrative journal are as they were written. `parley audit --verify`
// checks all of them.
import { verifyAudit, type AuditReader } from '../../store/audit.js';
import { sayMessage, texts } from '../language/language.js';
import type { Finding } from './doctor.js';

const CHECKED_ROWS = 1000;

export async function checkAudit(reader: AuditReader): Promise<Finding[]> {
  const { message } = await verifyAudit(reader, CHECKED_ROWS);
  return message === undefined
    ? []
    : [
        {
          name: 'audit',
          level: 'missing',
          text: texts().doctor.auditAltered(sayMessage(message)),
        },
      ];
}
