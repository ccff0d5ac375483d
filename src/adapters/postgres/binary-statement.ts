import type pg from 'pg';

/** As much of a connection of `pg` as is used; its types leave the rest of it out. */
interface Wire {
  readonly stream: { cork(): void; write(bytes: Buffer): boolean; uncork(): void };
  readonly parsedStatements: Readonly<Record<string, string | undefined>>;
  parse(statement: { readonly name: string; readonly text: string }): void;
}

/**
 * Messages of PostgreSQL's protocol, version 3 (Frontend/Backend Protocol, Message Formats). What follows the value:
 * one format for all results, text, of which there are none; then Execute, without a limit of rows, and Sync.
 */
const afterValue = Buffer.from([0, 1, 0, 0, 0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x53, 0, 0, 0, 4]);
const bindCode = 0x42;
/** Of what follows the value those that belong to Bind. */
const resultFormatBytes = 4;

/** Bind up to its value: no portal's name, the statement's, one parameter in binary form, its length. */
function beforeValue(name: string, valueBytes: number): Buffer {
  const nameBytes = Buffer.byteLength(name);
  const head = Buffer.alloc(1 + 4 + 1 + nameBytes + 1 + 2 + 2 + 2 + 4);
  head[0] = bindCode;
  head.writeInt32BE(head.length - 1 + valueBytes + resultFormatBytes, 1);
  let at = 6 + head.write(name, 6) + 1;
  for (const one of [1, 1, 1]) at = head.writeInt16BE(one, at);
  head.writeInt32BE(valueBytes, at);
  return head;
}

/**
 * A prepared statement with one value in binary form, of which only the end is told. `pg` takes it as it takes those of
 * its own, which are event emitters with a result, copy the value twice and ask the server to describe columns that
 * nobody reads: some 50 µs for a batch of rows, since the processor has forgotten that code by the next one.
 */
export class BinaryStatement implements pg.Submittable {
  /** By which the connection knows what it has prepared. */
  readonly name: string;
  readonly text: string;
  /** Set by `pg`. */
  callback: ((error: Error | null) => void) | undefined;
  readonly #value: Buffer;
  readonly #end = Promise.withResolvers<void>();

  constructor(name: string, text: string, value: Buffer) {
    this.name = name;
    this.text = text;
    this.#value = value;
  }

  /** Comes for whatever was handed to a connection, also to one that is lost. */
  get ended(): Promise<void> {
    return this.#end.promise;
  }

  submit(connection: pg.Connection): void {
    const { name, text } = this;
    const wire = connection as unknown as Wire;
    const { stream } = wire;
    stream.cork();
    if (wire.parsedStatements[name] === undefined) wire.parse({ name, text });
    stream.write(beforeValue(name, this.#value.length));
    stream.write(this.#value);
    stream.write(afterValue);
    stream.uncork();
  }

  handleError(error: Error): void {
    this.#end.reject(error);
    this.callback?.(error);
  }

  /** The server's answer to it is whole. */
  handleReadyForQuery(): void {
    this.#end.resolve();
    this.callback?.(null);
  }

  handleCommandComplete(): void {
    // Says how many rows were inserted: all of them, or it fails.
  }
}

/**
 * Resolves when the server has done it, and committed it; rejects with its error, or that of a connection that was not
 * to be had or is lost. A pool's word alone will not do: where it puts statements into transactions, it asks a client,
 * which gives a statement of this sort back at once.
 */
export async function runStatement(pool: pg.Pool, statement: BinaryStatement): Promise<void> {
  await Promise.all([pool.query(statement), statement.ended]);
}
