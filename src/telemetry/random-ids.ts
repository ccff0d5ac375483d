import { randomFillSync } from 'node:crypto';
import type { NodeSDKConfiguration } from '@opentelemetry/sdk-node';
import { spanIdDigits, traceIdDigits } from './hex-digits.ts';

type IdGenerator = NodeSDKConfiguration['idGenerator'];

/** Of some hundred requests. */
const poolBytes = 8_192;
const traceIdBytes = traceIdDigits / 2;
const spanIdBytes = spanIdDigits / 2;
const wordBytes = 4;

/** Random ids for traces and spans. No id may be all zeros (W3C Trace Context 3.2.2.3); every other is as good. */
export class RandomIds implements IdGenerator {
  readonly #pool = Buffer.allocUnsafeSlow(poolBytes);
  #at = poolBytes;
  #traceAt = 0;

  /**
   * Draws a trace id and tells its four words folded into one, by which samplers decide. Most requests are not recorded
   * and need no more of it: spelling it, and reading its digits, took 0.02 of all that a request costs.
   */
  drawTrace(): number {
    const at = this.#take(traceIdBytes);
    const first = this.#wordAt(at);
    const second = this.#wordAt(at + wordBytes);
    const third = this.#wordAt(at + 2 * wordBytes);
    const fourth = this.#wordAt(at + 3 * wordBytes);
    if ((first | second | third | fourth) === 0) return this.drawTrace();
    this.#traceAt = at;
    return (first ^ second ^ third ^ fourth) >>> 0;
  }

  /** The trace id that was drawn last, while no other id was. */
  drawnTraceId(): string {
    return this.#pool.toString('hex', this.#traceAt, this.#traceAt + traceIdBytes);
  }

  readonly generateTraceId = (): string => {
    this.drawTrace();
    return this.drawnTraceId();
  };

  readonly generateSpanId = (): string => {
    const at = this.#take(spanIdBytes);
    if ((this.#wordAt(at) | this.#wordAt(at + wordBytes)) === 0) return this.generateSpanId();
    return this.#pool.toString('hex', at, at + spanIdBytes);
  };

  #wordAt(at: number): number {
    return this.#pool.readUInt32BE(at);
  }

  /** Where the next bytes stand. */
  #take(count: number): number {
    if (this.#at + count > poolBytes) {
      randomFillSync(this.#pool);
      this.#at = 0;
    }
    const at = this.#at;
    this.#at += count;
    return at;
  }
}
