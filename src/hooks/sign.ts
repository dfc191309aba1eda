// The headers of a delivery as Standard Webhooks define them: whoever has the secret can tell that it is ours,
// unchanged and recent.
import { createHmac } from 'node:crypto';

export function signedHeaders(key: Buffer, id: string, now: number, body: string): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000));
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
