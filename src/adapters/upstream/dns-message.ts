import ipaddr from 'ipaddr.js';

/** Messages of DNS (RFC 1035 section 4): questions for the addresses of a name, and what answers say of them. */

export type AddressFamily = 4 | 6;

/** What a name server says. `code`: 0 is well, `noSuchName`, and others of its own trouble (RFC 1035 section 4.1.1). */
export interface NameAnswer {
  readonly code: number;
  /** No more than `maxRecords`; of an answer that was cut, those that came. */
  readonly addresses: readonly string[];
  readonly isCut: boolean;
}

export const noSuchName = 3;
export const serverRefuses = 5;
/** How long a datagram may be that comes back: what every path carries whole (DNS Flag Day 2020). */
export const maxMessageBytes = 1232;
/** Records of one answer that are looked at, aliases among them; a hostile zone can hold thousands. */
const maxRecords = 64;
const headBytes = 12;
const maxLabelBytes = 63;
const maxNameBytes = 253;

const types = { 4: 1, 6: 28 } as const;
const addressBytes = { 4: 4, 6: 16 } as const;
const classInternet = 1;
const recursionDesired = 0x0100;
const isResponse = 0x8000;
const isTruncated = 0x0200;
const codeMask = 0x000f;
/** Two bytes that say where a name goes on. */
const pointer = 0xc0;
/** An OPT record of the root: that answers may be longer than 512 bytes (RFC 6891). */
const longAnswers = Buffer.from([0, 0, 41, maxMessageBytes >> 8, maxMessageBytes & 0xff, 0, 0, 0, 0, 0, 0]);

/** Whether there may be a host of this name; a search domain can make one too long. */
export function isHostName(name: string): boolean {
  const isLabel = (label: string): boolean => label !== '' && Buffer.byteLength(label) <= maxLabelBytes;
  return Buffer.byteLength(name) <= maxNameBytes && name.split('.').every(isLabel);
}

/** The question section. */
function questionOf(name: string, family: AddressFamily): Buffer {
  const labels = name.split('.').map((label) => Buffer.from(label));
  const parts = labels.flatMap((label) => [Buffer.of(label.length), label]);
  return Buffer.concat([...parts, Buffer.of(0, 0, types[family], 0, classInternet)]);
}

/** For what `isHostName`. `mayBeLong`: some old servers refuse to hear of it. */
export function writeQuestion(id: number, name: string, family: AddressFamily, mayBeLong: boolean): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt16BE(id, 0);
  head.writeUInt16BE(recursionDesired, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(mayBeLong ? 1 : 0, 10);
  return Buffer.concat([head, questionOf(name, family), ...(mayBeLong ? [longAnswers] : [])]);
}

/** The place behind the name at `from`; -1 where it is none. */
function behindName(message: Buffer, from: number): number {
  for (let at = from; at < message.length; ) {
    const length = message[at] as number;
    if (length === 0) return at + 1;
    if (length >= pointer) return at + 2;
    if (length > maxLabelBytes) return -1;
    at += 1 + length;
  }
  return -1;
}

/** Null: it is no answer to this question. Never throws, whatever the message holds. */
export function readNameAnswer(
  message: Buffer,
  id: number,
  name: string,
  family: AddressFamily,
): NameAnswer | null {
  if (message.length < headBytes || message.readUInt16BE(0) !== id) return null;
  const flags = message.readUInt16BE(2);
  const question = questionOf(name.toLowerCase(), family).toString('latin1');
  const asked = message.toString('latin1', headBytes, headBytes + question.length).toLowerCase();
  if ((flags & isResponse) === 0 || message.readUInt16BE(4) !== 1 || asked !== question) return null;
  const addresses: string[] = [];
  const records = Math.min(message.readUInt16BE(6), maxRecords);
  let at = headBytes + question.length;
  for (let record = 0; record < records; record += 1) {
    const body = behindName(message, at);
    if (body < 0 || body + 10 > message.length) break;
    const from = body + 10;
    const length = message.readUInt16BE(body + 8);
    if (from + length > message.length) break;
    if (message.readUInt16BE(body) === types[family] && length === addressBytes[family]) {
      addresses.push(ipaddr.fromByteArray([...message.subarray(from, from + length)]).toString());
    }
    at = from + length;
  }
  return { code: flags & codeMask, addresses, isCut: (flags & isTruncated) !== 0 };
}
