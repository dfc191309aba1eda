// Builds the headers of a delivery as Standard Webhooks define them. A receiver with the secret can verify that the
// delivery is from this server, unchanged and recent.
import { createHmac } from 'node:crypto';

export function signedHeaders(
  key: Buffer,
  { id, now, body }: { readonly id: string; readonly now: number; readonly body: string },
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000));
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
