import type { AttackCase, BodyPlan, Sending } from '../attack-case.ts';

export interface RequestBytes {
  /** In the order of their writes; ends early where the client leaves. */
  readonly pieces: readonly Buffer[];
}

/** The prompt carries the request's id, so that a vendor knows whose call it serves. */
const padding = 'x'.repeat(64 * 1024);

function chatJson(plan: Extract<BodyPlan, { kind: 'chat' }>, id: string): Buffer {
  const make = (pad: string): string =>
    JSON.stringify({
      model: 'gw/balanced',
      messages: [{ role: 'user', content: `call ${id} ${pad}` }],
      ...plan.fields,
    });
  const bare = make('');
  const missing = plan.totalBytes - bare.length;
  if (missing <= 0) return Buffer.from(bare);
  const [before, after] = bare.split(`call ${id} `) as [string, string];
  const pads = Array.from({ length: Math.floor(missing / padding.length) }, () => padding);
  return Buffer.from(
    [before, `call ${id} `, ...pads, padding.slice(0, missing % padding.length), after].join(''),
  );
}

function cut(bytes: Buffer, pieceBytes: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes));
  return pieces;
}

/** A head of many kilobytes byte by byte is a system call each: the last write takes what is left. */
const mostHeadPieces = 400;

function cutHead(head: Buffer, pieceBytes: number): Buffer[] {
  const dripped = Math.min(head.length, pieceBytes * mostHeadPieces);
  const rest = head.subarray(dripped);
  return [...cut(head.subarray(0, dripped), pieceBytes), ...(rest.length > 0 ? [rest] : [])];
}

function headOf(sending: Sending, id: string, key: string | null, bodyBytes: number): Buffer {
  const { method, path, headers, framing, lengthLie, expectContinue, body } = sending;
  const length =
    framing === 'chunked'
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': String(Math.max(0, bodyBytes + lengthLie)) };
  const lines = {
    host: 'gateway.test',
    'x-request-id': id,
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    ...(body === null ? {} : { 'content-type': 'application/json', ...length }),
    ...(expectContinue ? { expect: '100-continue' } : {}),
    ...headers,
  };
  const text = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${text.join('')}\r\n`, 'latin1');
}

/**
 * The bytes of a case's request. `id` is the request id; a pipelined copy has the same id with its number, so that
 * each has a row of its own.
 */
export function requestBytes({ sending }: AttackCase, id: string, key: string | null): RequestBytes {
  const pieces: Buffer[] = [];
  for (let copy = 0; copy < sending.copies; copy += 1) {
    const own = copyId(id, copy);
    const { body, framing, pieceBytes, headPieceBytes, stopIn, stopAt } = sending;
    const bytes = body === null ? Buffer.alloc(0) : body.kind === 'bytes' ? body.bytes : chatJson(body, own);
    const head = headOf(sending, own, key, bytes.length);
    if (stopIn === 'head') {
      for (const part of cutHead(head.subarray(0, Math.floor(head.length * stopAt)), headPieceBytes))
        pieces.push(part);
      return { pieces };
    }
    for (const part of cutHead(head, headPieceBytes)) pieces.push(part);
    const stop = stopIn === 'body' ? Math.floor(bytes.length * stopAt) : bytes.length;
    const kept = bytes.subarray(0, stop);
    const parts = framing === 'length' ? cut(kept, pieceBytes) : chunked(kept, pieceBytes);
    for (const part of parts) pieces.push(part);
    if (framing === 'chunked' && stopIn === 'never') pieces.push(Buffer.from('0\r\n\r\n'));
    if (stopIn === 'body') return { pieces };
  }
  return { pieces };
}

/** Many small HTTP chunks share a write: what matters is how they are framed, and one write each takes minutes. */
const bytesPerWrite = 16 * 1024;

function chunked(bytes: Buffer, pieceBytes: number): Buffer[] {
  const writes: Buffer[] = [];
  let parts: Buffer[] = [];
  let gathered = 0;
  const flush = (): void => {
    writes.push(Buffer.concat(parts));
    parts = [];
    gathered = 0;
  };
  const head = Buffer.from(`${pieceBytes.toString(16)}\r\n`);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = bytes.subarray(at, at + pieceBytes);
    parts.push(
      piece.length === pieceBytes ? head : Buffer.from(`${piece.length.toString(16)}\r\n`),
      piece,
      lineEnd,
    );
    gathered += piece.length + head.length + 2;
    if (gathered >= bytesPerWrite) flush();
  }
  if (parts.length > 0) flush();
  return writes;
}

const lineEnd = Buffer.from('\r\n');

export function copyId(id: string, copy: number): string {
  return copy === 0 ? id : `${id}_${copy}`;
}
