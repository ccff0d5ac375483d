import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { QueueReader, SocketQueues } from '../../adapters/system/socket-queues.ts';
import { peerName } from '../../core/net/client-network.ts';
import type { Leavers } from '../connections/leaving-connections.ts';
import { LeavingConnections, reset, restore } from '../connections/leaving-connections.ts';
import { responseOn } from '../connections/node-internals.ts';
import { AnswerReader, inTheWay } from './answer-reader.ts';

/**
 * Of the heap, for what the kernel has of answers, on either side: 38 MiB in the smallest pod, beside 144 MiB for all
 * buffers.
 */
export const sentHeapShare = 1 / 8;
/** Of that, where there was more: so much may be written again before the next look. */
const keptShare = 3 / 4;
/** Of that: where more may have been written before the kernel's answer is there, it is waited for. */
const mostShare = 5 / 4;
/** An answer's head, and a short refusal, which nobody else counts. */
const headBytes = 1024;
/** What any connection costs the kernel: after so little it is closed without a look. */
const fewBytes = 4 * 1024;
/** Of that: from here on readers are looked at regularly, so that it is known who of them reads. */
const watchedShare = 1 / 2;
/** Connections that are to be closed wait this long at most for a look. */
const lookMs = 500;
/** Vendors' connections that are held back fill up without a word, as fast as vendors send. */
const heldBackLookMs = 100;

/**
 * What the kernel has taken of answers and their clients have not, on clients' connections and on vendors' that are
 * held back for them: memory of the container, some megabytes for each connection, also when it is closed meanwhile.
 * What is written is added up, as are those held back, and where it may be too much the kernel is asked who has not
 * taken how much; then the largest of the user with the most are reset, slow ones first, which frees it at once.
 * No connection is closed while the kernel has an answer's bytes: nobody could reset it any more.
 */
export class SentAnswers {
  readonly #limitBytes: number;
  readonly #queues: QueueReader;
  readonly #readers = new Map<string, AnswerReader>();
  readonly #bySocket = new WeakMap<Socket, AnswerReader>();
  /** Whose vendors are held back. */
  readonly #heldBack = new Set<AnswerReader>();
  readonly #leavers = new LeavingConnections();
  #port = 0;
  /** In the kernel when it was looked, and written since. */
  #heldBytes = 0;
  #sinceBytes = 0;
  #looking = false;
  #looks = 0;
  #soon: NodeJS.Immediate | null = null;
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;
  /** Told of each connection that was reset. */
  onLetGo: () => void = () => undefined;

  constructor(limitBytes: number, queues: QueueReader) {
    this.#limitBytes = limitBytes;
    this.#queues = queues;
  }

  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const { remoteAddress, remotePort, localPort } = socket;
      if (this.#stopped || remoteAddress === undefined || remotePort === undefined) return;
      this.#port ||= localPort ?? 0;
      const name = peerName(remoteAddress, remotePort);
      const reader = new AnswerReader(socket);
      this.#readers.set(name, reader);
      this.#bySocket.set(socket, reader);
      socket.destroy = (error) => this.#close(socket, name, error);
      socket.once('close', () => {
        this.#leavers.delete(socket);
        this.#heldBack.delete(reader);
        if (this.#readers.get(name) === reader) this.#readers.delete(name);
      });
    });
    server.on('request', () => this.wrote(headBytes));
  }

  /** Whom the answer on this response is for. */
  answers(userId: string, { socket }: ServerResponse): void {
    const reader = socket === null ? undefined : this.#bySocket.get(socket);
    if (reader === undefined) return;
    reader.userId = userId;
    this.#heldBack.delete(reader);
  }

  /** The vendor's connection of that name is not read until this client has caught up; null: it has. */
  holdsBack({ socket }: ServerResponse, source: string | null): void {
    const reader = socket === null ? undefined : this.#bySocket.get(socket);
    if (reader === undefined) return;
    reader.source = source;
    if (source === null) this.#heldBack.delete(reader);
    else this.#heldBack.add(reader);
    if (this.#mayFillUp) this.#lookLater();
  }

  wrote(bytes: number): void {
    this.#sinceBytes += bytes;
    // Once the kernel has what this turn writes.
    if (this.#mayBeHeldBytes > this.#limitBytes) this.#soon ??= setImmediate(this.#lookIfNeeded);
    else if (this.#isMuch) this.#lookLater();
  }

  /** The process ends, or the kernel does not tell: connections are closed as ever. */
  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const { socket } of this.#readers.values()) restore(socket);
    this.#leavers.destroyAll();
  }

  /** In place of the socket's own `destroy`, which Node calls itself when both sides have ended. */
  #close(socket: Socket, name: string, error: Error | undefined): Socket {
    if (this.#leavers.has(socket)) return socket;
    if (socket.bytesWritten <= fewBytes) return restore(socket).destroy(error);
    // Its answer is cut.
    if (responseOn(socket) !== null || error !== undefined) return reset(socket);
    this.#leavers.add(socket, name);
    this.#lookLater();
    return socket;
  }

  #lookLater(): void {
    if (this.#stopped) return;
    const afterMs = this.#mayFillUp ? heldBackLookMs : lookMs;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#look();
    }, afterMs).unref();
  }

  get #mayBeHeldBytes(): number {
    return this.#heldBytes + this.#sinceBytes;
  }

  get #isMuch(): boolean {
    return this.#mayBeHeldBytes > this.#limitBytes * watchedShare;
  }

  get #mayFillUp(): boolean {
    return this.#heldBack.size * this.#queues.mostUnreadBytes > this.#limitBytes;
  }

  readonly #lookIfNeeded = (): void => {
    this.#soon = null;
    if (this.#mayBeHeldBytes > this.#limitBytes * mostShare) this.#lookNow();
    else if (this.#mayBeHeldBytes > this.#limitBytes) void this.#look();
  };

  async #look(): Promise<void> {
    if (this.#looking || this.#stopped) return;
    this.#looking = true;
    this.#looks += 1;
    const [look, leavers, sinceBytes] = [this.#looks, this.#leavers.now(), this.#sinceBytes];
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const queues = await this.#queues.read(this.#port).catch(notRead);
    this.#looking = false;
    // Another one was faster, and knows more.
    if (look === this.#looks) this.#saw(queues, leavers, sinceBytes);
    this.#lookAgainIfNeeded();
  }

  #lookNow(): void {
    if (this.#stopped) return;
    this.#looks += 1;
    this.#saw(this.#readNow(), this.#leavers.now(), this.#sinceBytes);
    this.#lookAgainIfNeeded();
  }

  #readNow(): SocketQueues | null | undefined {
    try {
      return this.#queues.readNow(this.#port);
    } catch {
      return undefined;
    }
  }

  #lookAgainIfNeeded(): void {
    if (this.#isMuch || this.#mayFillUp || this.#leavers.size > 0) this.#lookLater();
  }

  /** Null: the system does not tell. Undefined: it could not, and all stays as it is. */
  #saw(queues: SocketQueues | null | undefined, leavers: Leavers, sinceBytes: number): void {
    if (queues === null) this.stop();
    if (!queues) return;
    this.#sinceBytes -= sinceBytes;
    for (const socket of this.#leavers.letLeave(leavers, queues.sent)) this.#letGo(socket);
    this.#makeRoom(queues);
  }

  #makeRoom({ sent, unread }: SocketQueues): void {
    const nowMs = performance.now();
    this.#heldBytes = 0;
    for (const [name, reader] of this.#readers) {
      const heldBack = this.#heldBack.has(reader) ? (unread.get(reader.source ?? '') ?? 0) : 0;
      reader.saw(sent.get(name) ?? 0, heldBack, nowMs);
      this.#heldBytes += reader.bytes;
    }
    if (this.#heldBytes <= this.#limitBytes) return;
    for (const { socket, bytes } of inTheWay([...this.#readers.values()], this.#limitBytes * keptShare)) {
      this.#heldBytes -= bytes;
      this.#letGo(socket);
    }
  }

  #letGo(socket: Socket): void {
    if (socket.destroyed) return;
    reset(socket);
    this.onLetGo();
  }
}

/** The kernel was asked, and could not tell. */
const notRead = (): undefined => undefined;
