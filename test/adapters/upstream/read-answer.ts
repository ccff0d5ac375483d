import { createRequire } from 'node:module';
import type { ResponseFault } from '../../../src/adapters/upstream/response-parser.ts';
import { ResponseParser } from '../../../src/adapters/upstream/response-parser.ts';

/** How one reader understood some bytes, the end of the connection included. */
export interface Reading {
  readonly verdict: 'whole' | 'cut' | 'refused';
  readonly status: number;
  /** Lower-case name and value, in order. */
  readonly fields: readonly string[];
  readonly body: string;
  /** The connection would carry another request, if it had not ended. */
  readonly kept: boolean;
}

export interface OurReading extends Reading {
  /** Why it was refused. */
  readonly fault: ResponseFault | null;
}

/** A refusal tells nothing of what came before it. */
const refused = { verdict: 'refused', status: 0, fields: [], body: '', kept: false } as const;

/** Ours, given the bytes in the pieces that `cuts` (ascending places) make of them. */
export function readByOurs(bytes: Buffer, cuts: readonly number[] = []): OurReading {
  let status = 0;
  let fields: string[] = [];
  let body = '';
  const parser = new ResponseParser({
    onHead: (head) => {
      status = head.status;
      fields = Object.entries(head.headers).flatMap(([name, value]) =>
        [value ?? []].flat().flatMap((one) => [name, one]),
      );
    },
    onBody: (part) => {
      body += part.toString('latin1');
    },
  });
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    if (to > from) parser.push(Buffer.from(bytes.subarray(from, to)));
    from = Math.max(from, to);
    if (parser.state === 'failed') break;
  }
  if (parser.state === 'failed') return { ...refused, fault: parser.fault };
  // Before its end: an answer that this ends leaves no connection.
  const kept = parser.state === 'complete' && parser.persistent;
  return { verdict: parser.end() ? 'whole' : 'cut', status, fields, body, kept, fault: null };
}

type Callback = (...values: never[]) => unknown;

/** The parser of `node:http` (llhttp), as strict as Node has it by default. */
interface NodeParser {
  [callback: number]: Callback;
  initialize(type: number, resource: object, maxHeaderSize: number, lenient: number): void;
  execute(bytes: Buffer): number | Error;
  finish(): undefined | Error;
  close(): void;
}

interface NodeParserClass {
  new (): NodeParser;
  readonly RESPONSE: number;
  readonly kOnMessageBegin: number;
  readonly kOnHeaders: number;
  readonly kOnHeadersComplete: number;
  readonly kOnBody: number;
  readonly kOnMessageComplete: number;
}

const { HTTPParser } = createRequire(import.meta.url)('_http_common') as { HTTPParser: NodeParserClass };

/** Far above any head that is generated. */
const maxHeaderSize = 1024 * 1024;

/** Node's, up to the end of the first final answer. */
export function readByNode(bytes: Buffer): Reading {
  let status = 0;
  let fields: string[] = [];
  let pending: string[] = [];
  let body = '';
  let [whole, persistent, hasMore] = [false, false, false];
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.RESPONSE, {}, maxHeaderSize, 0);
  parser[HTTPParser.kOnMessageBegin] = () => {
    hasMore = whole;
  };
  parser[HTTPParser.kOnHeaders] = (more: string[]) => {
    if (!whole) pending.push(...more);
  };
  parser[HTTPParser.kOnHeadersComplete] = (
    _major: number,
    _minor: number,
    list: string[] | undefined,
    _method: number,
    _url: string,
    code: number,
    _reason: string,
    _upgrade: boolean,
    shouldKeepAlive: boolean,
  ) => {
    if (whole) return 0;
    status = code;
    persistent = shouldKeepAlive;
    fields = [...pending, ...(list ?? [])].map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text));
    pending = [];
    // As node:http does: an interim answer has no body, whatever it says.
    return code < 200 ? 1 : 0;
  };
  parser[HTTPParser.kOnBody] = (part: Buffer) => {
    if (!whole) body += part.toString('latin1');
  };
  parser[HTTPParser.kOnMessageComplete] = () => {
    if (status >= 200) whole = true;
  };
  const failed = parser.execute(bytes) instanceof Error;
  if (!whole && failed) {
    parser.close();
    return refused;
  }
  // A second answer that nobody asked for, or what is none, costs the connection.
  const kept = whole && persistent && !hasMore && !failed;
  if (!whole) parser.finish();
  parser.close();
  return { verdict: whole ? 'whole' : 'cut', status, fields, body, kept };
}
