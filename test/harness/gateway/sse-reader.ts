import type { Readable } from 'node:stream';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** The chunk fields that the tests look at. */
export interface Chunk {
  readonly id?: string;
  readonly object?: string;
  readonly created?: number;
  readonly model?: string;
  readonly choices?: readonly {
    readonly index: number;
    readonly delta: Readonly<Record<string, unknown>>;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: Readonly<Record<string, unknown>> | null;
  readonly error?: Readonly<Record<string, unknown>>;
}

/** A response read event by event; a plain body can be had with `text()`. */
export class SseReader {
  readonly status: number;
  readonly headers: Headers;
  readonly #body: Readable;
  readonly #bytes: AsyncIterator<Buffer>;
  #buffered = '';
  #ended = false;
  /** `complete`: the HTTP body ended properly; `cut`: the connection broke; null: still open. */
  end: 'complete' | 'cut' | null = null;
  #all = '';

  constructor(status: number, headers: Headers, body: Readable) {
    this.status = status;
    this.headers = headers;
    this.#body = body;
    body.on('error', () => {});
    this.#bytes = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  async #more(): Promise<boolean> {
    if (this.#ended) return false;
    try {
      const { value, done } = await this.#bytes.next();
      if (done !== true) {
        const text = value.toString('utf8');
        this.#buffered += text;
        this.#all += text;
        return true;
      }
      this.end = 'complete';
    } catch {
      this.end = 'cut';
    }
    this.#ended = true;
    return false;
  }

  /** The data of the next event, or null at the end. */
  async next(): Promise<string | null> {
    for (;;) {
      const edge = this.#buffered.indexOf('\n\n');
      if (edge >= 0) {
        const block = this.#buffered.slice(0, edge);
        this.#buffered = this.#buffered.slice(edge + 2);
        const data = block
          .split('\n')
          .filter((line) => line.startsWith('data:'))
          .map((line) => line.slice(5).trimStart());
        if (data.length > 0) return data.join('\n');
      } else if (!(await this.#more())) return null;
    }
  }

  /** The data of all events from here to the end. */
  async rest(): Promise<string[]> {
    const events: string[] = [];
    for (let data = await this.next(); data !== null; data = await this.next()) events.push(data);
    return events;
  }

  /** Reads events until one's content delta is not empty; returns that content. */
  async nextContent(): Promise<string | null> {
    for (let data = await this.next(); data !== null; data = await this.next()) {
      if (data === '[DONE]') continue;
      const content = (JSON.parse(data) as Chunk).choices?.[0]?.delta['content'];
      if (typeof content === 'string' && content !== '') return content;
    }
    return null;
  }

  /** The whole body as text, events or not. */
  async text(): Promise<string> {
    while (await this.#more());
    return this.#all;
  }

  /** Leaves without reading on: the gateway sees a client that went away. */
  destroy(): void {
    this.#body.destroy();
  }
}

/** A finished stream, taken apart. */
export interface ReadStream {
  readonly data: string[];
  /** The JSON events, `[DONE]` left out. */
  readonly chunks: Chunk[];
  /** All content deltas of choice 0, joined. */
  readonly content: string;
  readonly done: boolean;
  readonly gatewayChunks: Chunk[];
  readonly error: Readonly<Record<string, unknown>> | null;
}

/** Takes the data of all events apart. */
export function takeApart(data: readonly string[]): ReadStream {
  const chunks = data.filter((text) => text !== '[DONE]').map((text) => JSON.parse(text) as Chunk);
  const contentOf = (chunk: Chunk) => {
    const content = chunk.choices?.[0]?.delta['content'];
    return typeof content === 'string' ? content : '';
  };
  return {
    data: [...data],
    chunks,
    content: chunks.map(contentOf).join(''),
    done: data.at(-1) === '[DONE]',
    gatewayChunks: chunks.filter((chunk) => chunk.choices?.[0]?.delta['gateway'] !== undefined),
    error: chunks.find((chunk) => chunk.error !== undefined)?.error ?? null,
  };
}
