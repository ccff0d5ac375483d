import { createRequire } from 'node:module';
import { ResponseParser } from '../../../src/adapters/upstream/response-parser.ts';

/** How one reader understood some bytes, the end of the connection included. */
export interface Reading {
  readonly verdict: 'whole' | 'cut' | 'refused';
  readonly status: number;
  /** Lower-case name and value, in order. */
  readonly fields: readonly string[];
  readonly body: string;
}

/** Ours, given the bytes in the pieces that `cuts` (ascending places) make of them. */
export function readByOurs(bytes: Buffer, cuts: readonly number[] = []): Reading {
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
    if (parser.state === 'failed' || parser.state === 'complete') break;
  }
  if (parser.state === 'failed') return { verdict: 'refused', status: 0, fields: [], body: '' };
  return { verdict: parser.end() ? 'whole' : 'cut', status, fields, body };
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
  let whole = false;
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.RESPONSE, {}, maxHeaderSize, 0);
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
  ) => {
    if (whole) return 0;
    status = code;
    fields = [...pending, ...(list ?? [])].map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text));
    pending = [];
    return 0;
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
    return { verdict: 'refused', status: 0, fields: [], body: '' };
  }
  if (!whole) parser.finish();
  parser.close();
  return { verdict: whole ? 'whole' : 'cut', status, fields, body };
}
