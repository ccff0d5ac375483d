import type { IncomingMessage } from 'node:http';
import { HttpRequestError, overloaded } from '../../core/errors.ts';
import { PlacedList } from '../../core/placed-list.ts';
import { TimedTurns } from '../../timed-turns.ts';
import type { BodyHold } from './body-budget.ts';
import type { EarlyBody } from './early-body.ts';
import type { BodyReader, MeasuredMessage } from './measured-message.ts';
import { measured } from './measured-message.ts';

export interface BodyLimits {
  readonly limitBytes: number;
  readonly hold: BodyHold;
}

/** Bodies that come in are looked at this often; one of which nothing has come since the last look is refused. */
export const bodyProgressMs = 5_000;
/** Thousands may have stopped: so long they are refused in a turn. */
const refusalsTurnMs = 50;
/** Emitted on a message when its body is wanted: "100 Continue" waits for it. */
export const bodyWanted = 'bodyWanted';
/** The first place of a body whose end is not in sight. */
const firstBytes = 4 * 1024;
const noBytes = Buffer.alloc(0);

const bodyTooLarge = (): Error =>
  new HttpRequestError(413, 'The request body is too large.', 'body_too_large');

const stopped = (): Error => new HttpRequestError(408, 'The body did not keep coming.', 'request_timeout');

/** The client left: nobody will see it. */
const left = (): Error => Object.assign(new Error('The client left.'), { code: 'ECONNABORTED' });

/**
 * Every body that is coming in, so that one sweep finds those that have stopped: a timer for each would cost all
 * for the sake of a few.
 */
export class ArrivingBodies {
  readonly #arriving = new PlacedList<ArrivingBody>();
  readonly #refusals = new TimedTurns(refusalsTurnMs);
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#sweep(), bodyProgressMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  add(body: ArrivingBody): void {
    this.#arriving.add(body);
  }

  remove(body: ArrivingBody): void {
    this.#arriving.remove(body);
  }

  /** The process ends: whatever has not come by now is refused. */
  refuseAll(error: Error): void {
    for (const body of this.#arriving.entries.slice()) body.refuse(error);
  }

  #sweep(): void {
    for (const body of this.#arriving.entries.slice()) {
      if (!body.hasProgress()) this.#refusals.run(() => body.hasProgress() || body.refuse(stopped()));
    }
  }
}

/** The message, and what came of its body before. */
type Source = { readonly raw: IncomingMessage; readonly earlyBody: EarlyBody | null };

/** Hands out the bytes, or why they are not taken. */
type Done = (error: Error | null, body: Buffer | null) => void;

/**
 * A body on its way in. Its bytes are copied to one place that grows with them: a chunk kept as it came costs
 * hundreds of bytes however little it holds.
 */
class ArrivingBody implements BodyReader {
  place = -1;
  readonly #message: MeasuredMessage;
  readonly #early: EarlyBody | null;
  readonly #limits: BodyLimits;
  readonly #declared: number | null;
  readonly #among: ArrivingBodies;
  readonly #done: Done;
  #bytes: Buffer = noBytes;
  #received = 0;
  #receivedAtLook = -1;
  #isOver = false;

  constructor({ raw, earlyBody }: Source, limits: BodyLimits, among: ArrivingBodies, done: Done) {
    const length = raw.headers['content-length'];
    this.#message = measured(raw);
    this.#early = earlyBody;
    this.#limits = limits;
    this.#declared = length === undefined ? null : Number(length);
    this.#among = among;
    this.#done = done;
  }

  begin(): void {
    // For its head, before the first byte of its body.
    if (!this.#limits.hold.grow(0)) this.#done(overloaded(), null);
    else if ((this.#declared ?? 0) > this.#limits.limitBytes) this.#done(bodyTooLarge(), null);
    else if (this.#hasLeft) this.#done(left(), null);
    else this.#listen();
  }

  /** A message that was read to its end counts as destroyed too. */
  get #hasLeft(): boolean {
    const { destroyed, readableEnded, socket } = this.#message;
    return destroyed && !(readableEnded && !socket.destroyed);
  }

  #listen(): void {
    this.#among.add(this);
    if (this.#early !== null) this.#begun(this.#early);
    if (this.#isOver) return;
    this.#message.readBy(this);
    if (this.#message.headers.expect !== undefined) this.#message.emit(bodyWanted);
  }

  #begun(early: EarlyBody): void {
    const { state, bytes } = early.take();
    if (state === 'lost') {
      this.#limits.hold.earlyLost();
      this.#finish(overloaded());
      return;
    }
    if (bytes.length > 0) this.onBytes(bytes);
    if (state === 'whole') this.#finish(null);
  }

  /** Since it was asked last. At most twice the interval between two looks passes until one that stopped is refused. */
  hasProgress(): boolean {
    const has = this.#received !== this.#receivedAtLook;
    this.#receivedAtLook = this.#received;
    return has;
  }

  refuse(error: Error): void {
    this.#finish(error);
  }

  #refusalOf(bytes: number): Error | null {
    const { limitBytes, hold } = this.#limits;
    if (bytes > limitBytes) return bodyTooLarge();
    return hold.grow(bytes) ? null : overloaded();
  }

  #keep(chunk: Buffer): void {
    const before = this.#received;
    this.#received += chunk.length;
    // Nearly every body comes in one piece.
    if (before === 0 && this.#received === this.#declared) this.#bytes = chunk;
    else {
      if (this.#received > this.#bytes.length) this.#enlarge();
      chunk.copy(this.#bytes, before);
    }
  }

  /** Doubles the place, up to what the body can still become. */
  #enlarge(): void {
    const doubled = Math.max(2 * this.#bytes.length, this.#received, firstBytes);
    const larger = Buffer.allocUnsafeSlow(Math.min(doubled, this.#declared ?? this.#limits.limitBytes));
    this.#bytes.copy(larger);
    this.#bytes = larger;
  }

  onBytes(chunk: Buffer): void {
    if (this.#isOver) return;
    const refusal = this.#refusalOf(this.#received + chunk.length);
    if (refusal === null) this.#keep(chunk);
    else this.#finish(refusal);
  }

  onWhole(): void {
    this.#finish(null);
  }

  onGone(error: Error | null): void {
    this.#finish(error ?? left());
  }

  #finish(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#among.remove(this);
    const bytes = this.#bytes;
    const body = bytes.length === this.#received ? bytes : bytes.subarray(0, this.#received);
    this.#bytes = noBytes;
    if (error !== null) {
      // What still comes is for whoever refuses it.
      this.#message.readBy(null);
      this.#limits.hold.release();
    }
    this.#done(error, error === null ? body : null);
  }
}

/**
 * Reads a body. Hands out the bytes, or 413, 408 or 503 as soon as it is clear that they will not be taken: before
 * the first byte where the declared length is too large. The stream's own error otherwise.
 */
export function readBody(source: Source, limits: BodyLimits, among: ArrivingBodies, done: Done): void {
  new ArrivingBody(source, limits, among, done).begin();
}
