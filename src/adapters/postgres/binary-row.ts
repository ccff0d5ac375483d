import type { BinaryForm } from './binary-forms.ts';
import { asBigint, asBoolean, asCount, asInteger, asJson, asText, asUuid } from './binary-forms.ts';
import { writeText, writeUuid } from './binary-text.ts';
import { checkedBigint, checkedCount, checkedInteger } from './checked-numbers.ts';

/** A column of rows. */
export interface BinaryColumn<Row> {
  readonly form: BinaryForm;
  /** Of its type. */
  readonly oid: number;
  /** As its form takes it. */
  readonly of: (row: Row) => string | number | bigint | boolean | null;
}

/** Postgres counts from 2000, we from 1970. */
const epochMicros = 946_684_800_000_000;
const twoTo32 = 2 ** 32;
const jsonbVersion = 1;
/** What a typical row takes, with its attempts; more room is made where it does not do. */
const bytesPerRow = 1536;
/** What a value takes beside its text: its type, its length, and up to 16 bytes. */
const bytesPerValue = 24;
/** A row has its own length, its number of values, and a UUID's text lies where its bytes will be. */
const bytesBeside = 64;

/**
 * Composite values in the binary form of Postgres: an array of rows. The server reads it for a third of what JSON costs
 * it. Throws RangeError for what a type cannot hold; text with NUL is the server's to refuse.
 */
export class BinaryRows {
  #bytes: Buffer;
  #view: DataView;
  #at = 0;
  #rowAt = 0;
  /** Room for all of a row but its texts: it is there wherever a text ends. */
  #besideTexts = 0;

  /** `type`: the oid of the composite type. */
  constructor(type: number, rows: number) {
    this.#bytes = Buffer.allocUnsafe(bytesBeside + rows * bytesPerRow);
    this.#view = viewOf(this.#bytes);
    // One dimension, no nulls, its length, from 1.
    for (const word of [1, 0, type, rows, 1]) this.#word(word);
  }

  /** Of so many values. */
  begin(values: number): void {
    this.#besideTexts = bytesBeside + values * bytesPerValue;
    this.#reserve(this.#at, 0);
    this.#rowAt = this.#at;
    this.#word(0);
    this.#word(values);
  }

  boolean(oid: number, value: boolean): void {
    this.#word(oid);
    this.#word(1);
    this.#bytes[this.#at++] = value ? 1 : 0;
  }

  /** Microseconds since 1970. */
  instant(oid: number, micros: number): void {
    this.#word(oid);
    this.#word(8);
    const value = checkedCount(micros - epochMicros);
    this.#word(Math.floor(value / twoTo32));
    this.#word(value);
  }

  /**
   * The rest of the row. All forms are written here, and where the next value begins is a local: 30 values take 0.3 µs
   * less than by a call for each that finds its bytes and its place.
   */
  columns<Row>(columns: readonly BinaryColumn<Row>[], row: Row): void {
    let bytes = this.#bytes;
    let view = this.#view;
    let at = this.#at;
    for (let index = 0; index < columns.length; index += 1) {
      const { form, oid, of } = columns[index] as BinaryColumn<Row>;
      const value = of(row);
      view.setInt32(at, oid);
      at += 8;
      const start = at;
      if (value === null) {
        view.setInt32(start - 4, -1);
        continue;
      }
      switch (form) {
        case asText:
        case asJson:
          if (this.#reserve(at, 3 * (value as string).length)) {
            bytes = this.#bytes;
            view = this.#view;
          }
          if (form === asJson) bytes[at++] = jsonbVersion;
          at += writeText(bytes, at, value as string);
          break;
        case asCount:
          view.setInt32(at, Math.floor(checkedCount(value as number) / twoTo32));
          view.setInt32(at + 4, value as number);
          at += 8;
          break;
        case asBoolean:
          bytes[at++] = value === true ? 1 : 0;
          break;
        case asUuid:
          at += writeUuid(bytes, at, value as string);
          break;
        case asInteger:
          view.setInt32(at, checkedInteger(value as number));
          at += 4;
          break;
        case asBigint:
          view.setBigInt64(at, checkedBigint(value as bigint));
          at += 8;
          break;
      }
      view.setInt32(start - 4, at - start);
    }
    this.#at = at;
  }

  end(): void {
    this.#view.setInt32(this.#rowAt, this.#at - this.#rowAt - 4);
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  #word(value: number): void {
    this.#view.setInt32(this.#at, value);
    this.#at += 4;
  }

  /** True: what was written until `at` is elsewhere now, with room for so many bytes of text and all beside texts. */
  #reserve(at: number, textBytes: number): boolean {
    const needed = at + textBytes + this.#besideTexts;
    if (needed <= this.#bytes.length) return false;
    const larger = Buffer.allocUnsafe(2 * needed);
    this.#bytes.copy(larger, 0, 0, at);
    this.#bytes = larger;
    this.#view = viewOf(larger);
    return true;
  }
}

const viewOf = ({ buffer, byteOffset, length }: Buffer): DataView => new DataView(buffer, byteOffset, length);
