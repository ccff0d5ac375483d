import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { AttackCase, Leaving, Reading } from '../attack-case.ts';
import type { Answer } from './answer-reader.ts';
import { AnswerReader } from './answer-reader.ts';
import type { RequestBytes } from './request-bytes.ts';
import { drained } from './sockets.ts';

/** Nobody waits longer for `100 Continue`. */
const continueMs = 200;
/** More pauses than this would only make the stage longer. */
const mostPauses = 100;
/** A silent client keeps its connection for so long. */
const silenceMs = 300;
const readBytes = 64 * 1024;

export interface Seen {
  readonly answers: readonly Answer[];
  readonly problem: string | null;
  /** What ended it: all answers came, the gateway closed, the client left as planned, or the limit. */
  readonly ending: 'answered' | 'closed' | 'left' | 'limit';
  readonly ms: number;
  /** Whether the whole request was written. */
  readonly sent: boolean;
}

/** One for all: what is read into it is taken out before anybody else reads. */
const wide = Buffer.alloc(readBytes);

/** Reads a socket as a plan says, through a window of its own: what is not asked for stays in the kernel. */
class Reader {
  readonly answers = new AnswerReader();
  total = 0;
  #pauses = 0;
  readonly #reading: Reading;
  onProgress: () => void = () => {};

  constructor(reading: Reading) {
    this.#reading = reading;
  }

  window(): Uint8Array {
    const reading = this.#reading;
    if (reading.kind === 'slow' && this.total < reading.slowBytes)
      return wide.subarray(0, reading.pieceBytes);
    if (reading.kind === 'leave') return wide.subarray(0, Math.min(readBytes, reading.afterBytes + 1));
    return wide;
  }

  /** False: the socket waits until `resume`. */
  take(bytes: Buffer, socket: Socket): boolean {
    this.total += bytes.length;
    this.answers.push(bytes);
    this.onProgress();
    const reading = this.#reading;
    const mayPause = reading.kind === 'slow' && this.total < reading.slowBytes && reading.pauseMs > 0;
    if (!mayPause || this.#pauses >= mostPauses) return true;
    this.#pauses += 1;
    setTimeout(() => socket.resume(), reading.pauseMs);
    return false;
  }
}

export function leave(socket: Socket, how: Leaving): void {
  if (how === 'reset') socket.resetAndDestroy();
  else socket.destroy();
}

/** Writes as planned; true when all was written. Resolves early when the socket ends. */
async function send(socket: Socket, request: RequestBytes, attack: AttackCase): Promise<boolean> {
  const { pauseMs, expectContinue, stopIn } = attack.sending;
  let pauses = 0;
  for (const [index, piece] of request.pieces.entries()) {
    if (socket.destroyed || socket.writableEnded) return false;
    if (!socket.write(piece)) await drained(socket);
    if (index === 0 && expectContinue && attack.sending.headPieceBytes >= 1024) await delay(continueMs);
    else if (pauseMs > 0 && pauses < mostPauses) {
      pauses += 1;
      await delay(pauseMs);
    }
  }
  return stopIn === 'never';
}

/** Carries one case out against the gateway. Never rejects; never takes longer than `limitMs`. */
export function attackOnce(
  target: { readonly host: string; readonly port: number },
  request: RequestBytes,
  attack: AttackCase,
  limitMs: number,
): Promise<Seen> {
  const { sending, reading } = attack;
  const reader = new Reader(reading);
  const startedAtMs = performance.now();
  return new Promise((resolve) => {
    let sent = false;
    let over = false;
    const finish = (ending: Seen['ending']): void => {
      if (over) return;
      over = true;
      clearTimeout(limit);
      if (ending === 'closed') reader.answers.close();
      const { problem } = reader.answers;
      if (ending !== 'left') socket.destroy();
      const ms = performance.now() - startedAtMs;
      resolve({ answers: reader.answers.answers(), problem, ending, ms, sent });
    };
    const limit = setTimeout(() => finish('limit'), limitMs);
    const leaveNow = (how: Leaving): void => {
      leave(socket, how);
      finish('left');
    };
    const socket: Socket = connect({
      ...target,
      noDelay: true,
      allowHalfOpen: true,
      onread: {
        buffer: () => reader.window(),
        callback: (length, window) =>
          reader.take(Buffer.from(window.buffer, window.byteOffset, length), socket),
      },
    });
    if (reading.kind === 'never') socket.pause();
    reader.onProgress = () => {
      if (reading.kind === 'leave' && reader.total > reading.afterBytes) leaveNow(reading.how);
      else if (reader.answers.finished >= sending.copies || reader.answers.problem !== null) {
        // An early refusal comes before the body is written: the connection is done with either way.
        finish('answered');
      }
    };
    socket.on('error', () => finish('closed'));
    socket.on('end', () => finish('closed'));
    socket.on('close', () => finish('closed'));
    socket.on('connect', () => {
      void send(socket, request, attack).then(async (whole) => {
        sent = whole;
        if (over) return;
        if (!whole && sending.stopIn !== 'never') {
          if (sending.stopHow === 'silence') await delay(silenceMs);
          leaveNow(sending.stopHow);
        } else if (reading.kind === 'half-close') socket.end();
        else if (reading.kind === 'never') setTimeout(() => leaveNow(reading.how), reading.leaveAfterMs);
        else if (reading.kind === 'leave' && reading.afterBytes === 0) {
          setTimeout(() => leaveNow(reading.how), reading.afterMs);
        }
      });
    });
  });
}
