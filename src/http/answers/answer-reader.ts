import type { Socket } from 'node:net';
import { takenBytes } from '../connections/node-internals.ts';
import { answerStallMs } from './stalled-readers.ts';

/** A reader's pace is judged over no less: one far away takes nothing for some hundred milliseconds at a time. */
const paceMs = 1_000;

/** A client's connection, and the account that its latest answer is for; strangers are one. */
export class AnswerReader {
  readonly socket: Socket;
  userId = '';
  /** By `connectionName`, the vendor's connection that is held back until this client has caught up. */
  source: string | null = null;
  /** In the kernel at the last look: sent and not acknowledged, and come from the vendor and held back. */
  bytes = 0;
  /** At its pace it would take longer for them than a reader may take nothing at all. */
  isSlow = false;
  #takenBytes = 0;
  #sinceMs = 0;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  saw(sentBytes: number, unreadBytes: number, nowMs: number): void {
    const isNew = this.bytes === 0;
    const passedMs = nowMs - this.#sinceMs;
    this.bytes = sentBytes + unreadBytes;
    if (!isNew && passedMs < paceMs) return;
    const taken = takenBytes(this.socket) - sentBytes;
    this.isSlow = !isNew && (taken - this.#takenBytes) * answerStallMs < this.bytes * passedMs;
    this.#takenBytes = taken;
    this.#sinceMs = nowMs;
  }
}

/**
 * Who has to go for the rest to hold no more than `limitBytes`: the slow ones first, and of those, as of the others,
 * the largest of the user with the most.
 */
export function inTheWay(readers: readonly AnswerReader[], limitBytes: number): AnswerReader[] {
  let held = readers.reduce((sum, { bytes }) => sum + bytes, 0);
  const leaving: AnswerReader[] = [];
  for (const slow of [true, false]) {
    const ofUser = Map.groupBy(
      readers.filter(({ isSlow, bytes }) => isSlow === slow && bytes > 0).sort((a, b) => a.bytes - b.bytes),
      ({ userId }) => userId,
    );
    const shares = [...ofUser.values()].map((own) => ({
      own,
      bytes: own.reduce((sum, { bytes }) => sum + bytes, 0),
    }));
    while (held > limitBytes && shares.length > 0) {
      const most = shares.reduce((first, one) => (one.bytes > first.bytes ? one : first));
      const largest = most.own.pop();
      if (largest === undefined) break;
      most.bytes -= largest.bytes;
      held -= largest.bytes;
      leaving.push(largest);
    }
  }
  return leaving;
}
