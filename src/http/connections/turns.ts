import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isBodyComing } from '../answers/linger.ts';
import { earlyBytes } from '../body/early-body.ts';
import { parseNoFurther } from '../body/measured-message.ts';
import { headCost } from './head-cost.ts';

/** Behind the one that is worked on. Clients that pipeline at all send a handful; one read can hold 2,500. */
export const maxWaitingRequests = 128;
/**
 * Of all connections, in one turn of the event loop, which reads what has come on each of them: so many take it 40 ms,
 * since each is some 20 µs and most are answered in the same turn.
 */
export const maxWaitingPerTurn = 2_000;
/** What waiting requests of all connections may take of the heap: it is room for strangers too. */
export const turnsHeapShare = 1 / 32;

/** What waits on one connection. */
interface Line {
  count: number;
  bytes: number;
}

/** No less than what this request can make the process keep until its turn comes. */
function costOf(request: IncomingMessage): number {
  const bytes = headCost(request);
  if (!isBodyComing(request)) return bytes;
  const declared = Number(request.headers['content-length'] ?? earlyBytes);
  return bytes + Math.min(declared, earlyBytes);
}

/**
 * The requests that were sent behind another one on their connection. There is no answer that could come before
 * the one that is under way: a connection that sends more than may wait is cut.
 */
export class Turns {
  readonly #lines = new WeakMap<Socket, Line>();
  readonly #limitBytes: number;
  #bytes = 0;
  #inThisTurn = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** What waits on all connections, by its cost. */
  get waitingBytes(): number {
    return this.#bytes;
  }

  /**
   * Calls `onTurn` when the answer of this request may be written, unless its client has left. False: it must be
   * dropped without an answer, since its connection is cut. What the same read holds behind it is not parsed.
   */
  wait(request: IncomingMessage, response: ServerResponse, onTurn: () => void): boolean {
    const { socket } = request;
    if (socket.destroyed) return false;
    const line = this.#lines.get(socket) ?? this.#open(socket);
    const bytes = costOf(request);
    this.#countInTurn();
    const isTooMany = line.count === maxWaitingRequests || this.#inThisTurn > maxWaitingPerTurn;
    if (isTooMany || this.#bytes + bytes > this.#limitBytes) {
      parseNoFurther(socket);
      socket.destroy();
      return false;
    }
    this.#move(line, 1, bytes);
    response.once('socket', () => {
      // Node may still pass on a turn on a connection that is cut; `close` gives back what waits there.
      if (socket.destroyed) return;
      this.#move(line, -1, -bytes);
      onTurn();
    });
    return true;
  }

  #countInTurn(): void {
    if (this.#inThisTurn === 0) {
      setImmediate(() => {
        this.#inThisTurn = 0;
      });
    }
    this.#inThisTurn += 1;
  }

  #open(socket: Socket): Line {
    const line: Line = { count: 0, bytes: 0 };
    this.#lines.set(socket, line);
    socket.once('close', () => this.#move(line, -line.count, -line.bytes));
    return line;
  }

  #move(line: Line, count: number, bytes: number): void {
    line.count += count;
    line.bytes += bytes;
    this.#bytes += bytes;
  }
}
