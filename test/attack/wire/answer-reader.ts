/** Bodies are kept up to here for judgement; what comes after is only counted. */
const keptBytes = 4 * 1024 * 1024;

export interface Answer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  /** Whether its end was seen. */
  readonly whole: boolean;
  /** True when `body` is all there was. */
  readonly kept: boolean;
}

interface Open {
  status: number;
  headers: Map<string, string>;
  pieces: Buffer[];
  bytes: number;
  whole: boolean;
}

type Phase = 'head' | 'length' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailers' | 'until-close';

/** Takes HTTP/1.1 answers apart as their bytes come, however small the pieces are. */
export class AnswerReader {
  readonly #answers: Open[] = [];
  #phase: Phase = 'head';
  /** Text of the line or head that is not whole yet. */
  #text = '';
  #left = 0;
  /** Why these bytes are no answers. */
  problem: string | null = null;

  get finished(): number {
    return this.#answers.filter((answer) => answer.whole).length;
  }

  get begun(): boolean {
    return this.#answers.length > 0;
  }

  answers(): Answer[] {
    return this.#answers.map(({ status, headers, pieces, bytes, whole }) => ({
      status,
      headers,
      body: Buffer.concat(pieces).toString('utf8'),
      whole,
      kept: bytes <= keptBytes,
    }));
  }

  push(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length && this.problem === null) at = this.#step(bytes, at);
  }

  /** The connection has ended: an answer without a length is whole now. */
  close(): void {
    const last = this.#answers.at(-1);
    if (this.#phase === 'until-close' && last !== undefined) last.whole = true;
  }

  #step(bytes: Buffer, at: number): number {
    switch (this.#phase) {
      case 'head':
        return this.#until(bytes, at, '\r\n\r\n', (head) => this.#open(head));
      case 'chunk-size':
        return this.#until(bytes, at, '\r\n', (line) => this.#openChunk(line));
      case 'chunk-end':
        return this.#until(bytes, at, '\r\n', () => {
          this.#phase = 'chunk-size';
        });
      case 'trailers':
        return this.#until(bytes, at, '\r\n', (line) => {
          if (line === '') this.#finish();
        });
      case 'length':
      case 'chunk':
      case 'until-close':
        return this.#take(bytes, at);
    }
  }

  #until(bytes: Buffer, at: number, mark: string, done: (text: string) => void): number {
    const before = this.#text.length;
    const text = this.#text + bytes.toString('latin1', at);
    const end = text.indexOf(mark, Math.max(0, before - mark.length));
    if (end < 0) {
      this.#text = text;
      return bytes.length;
    }
    this.#text = '';
    done(text.slice(0, end));
    return at + end + mark.length - before;
  }

  #open(head: string): void {
    const [first = '', ...lines] = head.split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(`${first} `)?.[1] ?? Number.NaN);
    if (Number.isNaN(status)) {
      this.problem = `no answer: ${JSON.stringify(first.slice(0, 80))}`;
      return;
    }
    if (status < 200) return;
    const headers = new Map(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
      }),
    );
    this.#answers.push({ status, headers, pieces: [], bytes: 0, whole: false });
    this.#left = Number(headers.get('content-length') ?? 0);
    if (headers.get('transfer-encoding') === 'chunked') this.#phase = 'chunk-size';
    else if (headers.has('content-length')) this.#phase = 'length';
    else if (status === 204 || status === 304) this.#left = 0;
    else this.#phase = 'until-close';
    if (this.#phase !== 'chunk-size' && this.#phase !== 'until-close' && this.#left === 0) this.#finish();
  }

  #openChunk(line: string): void {
    this.#left = Number.parseInt(line, 16);
    if (Number.isNaN(this.#left)) this.problem = `no chunk size: ${JSON.stringify(line.slice(0, 80))}`;
    this.#phase = this.#left === 0 ? 'trailers' : 'chunk';
  }

  #take(bytes: Buffer, at: number): number {
    const answer = this.#answers.at(-1) as Open;
    const length =
      this.#phase === 'until-close' ? bytes.length - at : Math.min(this.#left, bytes.length - at);
    const piece = bytes.subarray(at, at + length);
    answer.bytes += length;
    // A copy: the driver reads into the same few bytes again and again.
    if (answer.bytes <= keptBytes) answer.pieces.push(Buffer.from(piece));
    this.#left -= length;
    if (this.#phase === 'length' && this.#left === 0) this.#finish();
    if (this.#phase === 'chunk' && this.#left === 0) this.#phase = 'chunk-end';
    return at + length;
  }

  #finish(): void {
    (this.#answers.at(-1) as Open).whole = true;
    this.#phase = 'head';
  }
}
