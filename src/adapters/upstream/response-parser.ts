import { ByteBuffer } from '../../core/byte-buffer.ts';
import { ChunkedBody } from './chunked-body.ts';
import type { ResponseHead } from './response-head.ts';
import { httpPrefix, readResponseHead } from './response-head.ts';

/** What one answer is taken apart into. Slices are only valid during the call. */
export interface ResponseReader {
  onHead(head: ResponseHead): void;
  onBody(bytes: Buffer): void;
}

/** Why the bytes are no answer. */
export type ResponseFault = 'protocol' | 'too-large';

/** Status line and fields of one answer, interim ones included: as many as Node's own client takes. */
export const maxHeadBytes = 16 * 1024;
/** `100 Continue`, `103 Early Hints`: a few are usual, a flood of them is an attack. */
const maxInterimHeads = 16;
const headEnd = Buffer.from('\r\n\r\n');

/** As far as the bytes go. */
function beginsAsHttp(bytes: Buffer): boolean {
  const known = Math.min(bytes.length, httpPrefix.length);
  for (let at = 0; at < known; at += 1) if (bytes[at] !== httpPrefix[at]) return false;
  return true;
}

/**
 * One answer of HTTP/1.1 from bytes in any split, without I/O.
 *
 * - `head`: bytes are gathered up to the empty line. Interim answers stay here.
 * - `counted`: a body of known length; `chunked`: one in chunks; `closing`: one that the end of the connection ends.
 * - `complete`: nothing may follow. `failed`: what came is no answer.
 */
export class ResponseParser {
  state: 'head' | 'counted' | 'chunked' | 'closing' | 'complete' | 'failed' = 'head';
  fault: ResponseFault | null = null;
  /** The connection may be used again, once complete. */
  persistent = false;
  readonly #reader: ResponseReader;
  /** The head as far as it came; null while nothing of one is held. */
  #pending: ByteBuffer | null = null;
  #interimHeads = 0;
  #left = 0;
  #chunks: ChunkedBody | null = null;

  constructor(reader: ResponseReader) {
    this.#reader = reader;
  }

  push(bytes: Buffer): void {
    let rest = bytes;
    while (this.state === 'head') {
      const after = this.#takeHead(rest);
      if (after === null) return;
      rest = after;
    }
    this.#takeBody(rest);
  }

  /** The connection has ended. True when the answer is whole. */
  end(): boolean {
    if (this.state === 'closing') this.state = 'complete';
    return this.state === 'complete';
  }

  /** What lies behind the head; null while it is not whole, or when it is none. */
  #takeHead(bytes: Buffer): Buffer | null {
    const held = this.#pending?.length ?? 0;
    // What was held lies in a buffer that grows: a head of one byte a read costs no more than its length.
    this.#pending?.append(bytes);
    const all = this.#pending?.view() ?? bytes;
    const end = all.indexOf(headEnd, Math.max(0, held - 3));
    if (!beginsAsHttp(all)) return this.#fail('protocol');
    // Three bytes may be of the empty line: what is too large must not depend on how it comes in pieces.
    const length = end < 0 ? all.length - (headEnd.length - 1) : end;
    if (length > maxHeadBytes) return this.#fail('too-large');
    if (end < 0) {
      // What came is in a buffer that will be written again.
      if (this.#pending === null) {
        this.#pending = new ByteBuffer();
        this.#pending.append(bytes);
      }
      return null;
    }
    const head = readResponseHead(all, end);
    this.#pending = null;
    if (head === null || head.status === 101) return this.#fail('protocol');
    if (head.status >= 200) this.#begin(head);
    else if (++this.#interimHeads > maxInterimHeads) return this.#fail('protocol');
    return all.subarray(end + headEnd.length);
  }

  #begin(head: ResponseHead): void {
    const { framing } = head;
    this.persistent = head.persistent;
    if (framing.kind === 'none') this.state = 'complete';
    else if (framing.kind === 'chunked') {
      this.state = 'chunked';
      this.#chunks = new ChunkedBody();
    } else if (framing.kind === 'length') {
      this.state = 'counted';
      this.#left = framing.bytes;
    } else this.state = 'closing';
    this.#reader.onHead(head);
  }

  #takeBody(bytes: Buffer): void {
    if (bytes.length === 0) return;
    if (this.state === 'counted') this.#takeCounted(bytes);
    else if (this.state === 'chunked') this.#takeChunked(bytes);
    else if (this.state === 'closing') this.#reader.onBody(bytes);
    // Something behind an answer belongs to no request of ours.
    else this.persistent = false;
  }

  #takeCounted(bytes: Buffer): void {
    const own = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left);
    this.#left -= own.length;
    if (this.#left === 0) {
      this.state = 'complete';
      if (own.length < bytes.length) this.persistent = false;
    }
    this.#reader.onBody(own);
  }

  #takeChunked(bytes: Buffer): void {
    const chunks = this.#chunks as ChunkedBody;
    const used = chunks.push(bytes, (part) => this.#reader.onBody(part));
    if (chunks.state === 'failed') this.#fail('protocol');
    if (chunks.state !== 'complete') return;
    this.state = 'complete';
    if (used < bytes.length) this.persistent = false;
  }

  #fail(fault: ResponseFault): null {
    this.state = 'failed';
    this.fault = fault;
    this.persistent = false;
    return null;
  }
}
