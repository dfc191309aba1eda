// One log file: its size and hash, and when it is durable.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { StreamLog } from '../../src/process/stream-log.js';

// A disk with room for some bytes, which has room again right after it was full.
class SmallDisk {
  readonly written: Buffer[] = [];
  readonly calls: string[] = [];
  #room: number;

  constructor(room: number) {
    this.#room = room;
  }

  write(bytes: Buffer, from: number): number {
    if (this.#room === 0) {
      this.#room = Infinity;
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    }
    const written = Math.min(bytes.length - from, this.#room);
    this.#room -= written;
    this.written.push(Buffer.from(bytes.subarray(from, from + written)));
    return written;
  }

  get syncs(): number {
    return this.calls.filter((call) => call === 'datasync').length;
  }

  // The disk refuses so many.
  refusals = 0;

  async datasync(): Promise<void> {
    this.calls.push('datasync');
    if ((this.refusals -= 1) >= 0) throw Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });
  }

  async close(): Promise<void> {
    this.calls.push('close');
  }
}

test('a disk that fills up in the middle of a chunk: bytes and hash match the file, and no hole follows', () => {
  const disk = new SmallDisk(7);
  const log = new StreamLog(disk);
  log.append(Buffer.from('01234'));
  expect(() => log.append(Buffer.from('56789'))).toThrow('ENOSPC');
  expect(() => log.append(Buffer.from('after'))).toThrow('ENOSPC');
  expect(Buffer.concat(disk.written).toString()).toBe('0123456');
  expect(log.digest()).toEqual({ bytes: 7, sha256: createHash('sha256').update('0123456').digest('hex') });
});

test('synced bytes are not synced again', async () => {
  const disk = new SmallDisk(100);
  const log = new StreamLog(disk);
  await log.sync();
  expect(disk.syncs).toBe(0);
  log.append(Buffer.from('x'));
  await log.sync();
  await log.close();
  await log.sync();
  expect(disk.syncs).toBe(1);
});

test('a log that is closed is on the disk before', async () => {
  const disk = new SmallDisk(100);
  const log = new StreamLog(disk);
  log.append(Buffer.from('x'));
  await log.close();
  expect(disk.calls).toEqual(['datasync', 'close']);
});

test('bytes whose sync failed once are never reported as durable later', async () => {
  const disk = new SmallDisk(100);
  disk.refusals = 1;
  const log = new StreamLog(disk);
  log.append(Buffer.from('x'));
  await expect(log.sync()).rejects.toThrow('EIO');
  await expect(log.sync()).rejects.toThrow('EIO');
  await expect(log.close()).rejects.toThrow('EIO');
  expect(disk.calls).toEqual(['datasync', 'close']);
});
