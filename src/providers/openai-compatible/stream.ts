import type { WireUsage } from '../../core/answer/chat-completion.ts';
import type { SseEvent } from '../../core/answer/sse-decoder.ts';
import { SseDecoder } from '../../core/answer/sse-decoder.ts';
import { frameEndBytes, pushFrame } from '../../core/answer/sse-frame.ts';
import type { Usage } from '../../core/answer/usage.ts';
import { ownCopy } from '../../core/own-copy.ts';
import { chunkFrame, chunkFrameStart, joinFrames } from '../chunk-frame.ts';
import { isErrorValue } from '../error-body.ts';
import type { Untrusted } from '../json-value.ts';
import { eventBounds, isRecord, readJson } from '../json-value.ts';
import type { StreamContext, StreamPhase, StreamTranslator, UpstreamError } from '../provider.ts';
import {
  emptyStream,
  oversizedEvent,
  reportedFailure,
  truncatedStream,
  unreadableStream,
} from '../stream-failure.ts';
import { errorOfChoice, failedChoice } from './choice.ts';
import { deltaTextBytes } from './delta-text-bytes.ts';
import type { TextField } from './plain-template.ts';
import { PlainTemplate } from './plain-template.ts';
import { ChunkReader } from './stream-chunk.ts';
import { readUsage, StatedUsage } from './usage.ts';
import type { WireCompletion } from './wire.ts';

/** An event that is longer is learnt from at once, and not kept until the next one comes. */
const maxLessonLength = 4096;

/** `[DONE]` with some white space around; longer data is something else. */
const maxDoneLength = 16;

function isDone(data: Buffer): boolean {
  return data.length <= maxDoneLength && data.toString('latin1').trim() === '[DONE]';
}

/**
 * Stream of a vendor of OpenAI shape. A read that holds nothing but plain content deltas is returned as it is;
 * every other event is parsed, and its bytes are still passed on as they came unless it had to be put into form.
 */
export class CompatibleStream implements StreamTranslator {
  phase: StreamPhase = 'prefix';
  tokenSeen = false;
  failure: UpstreamError | null = null;
  readonly #maxEventBytes: number;
  readonly #asked: number;
  readonly decoder: SseDecoder;
  readonly #chunks: ChunkReader;
  #template: PlainTemplate | null = null;
  /** What the next template is learnt from. */
  #lesson: { readonly data: Buffer; readonly field: TextField } | null = null;
  readonly #stated = new StatedUsage();
  /** Beside what was found by the template at hand. */
  #textBytes = 0;

  constructor(context: StreamContext) {
    this.#maxEventBytes = context.maxEventBytes;
    this.#asked = context.choices;
    this.decoder = new SseDecoder(context.maxEventBytes);
    this.#chunks = new ChunkReader(context);
  }

  get usage(): Usage {
    return this.#stated.usage(this.answerEnded);
  }

  get wireUsage(): WireUsage | null {
    return this.#stated.wire;
  }

  get textBytes(): number {
    return this.#textBytes + (this.#template?.textBytes ?? 0);
  }

  get keptBytes(): number {
    return this.#chunks.keptBytes;
  }

  get answerEnded(): boolean {
    return this.#chunks.ended;
  }

  get extras(): Readonly<Record<string, unknown>> {
    return this.#chunks.extras;
  }

  get id(): string {
    return this.#chunks.id;
  }

  get created(): number {
    return this.#chunks.created;
  }

  get model(): string {
    return this.#chunks.model;
  }

  get finishReasons(): readonly string[] {
    return this.#chunks.finishReasons;
  }

  push(chunk: Buffer): Buffer | null {
    if (this.#ended || chunk.length === 0) return null;
    const output: Buffer[] = [];
    let position = 0;
    while (position < chunk.length && !this.#ended) {
      const plain = this.#plainUntil(chunk, position);
      if (position === 0 && plain === chunk.length) return chunk;
      if (plain > position) output.push(chunk.subarray(position, plain));
      position = plain === chunk.length ? plain : this.#decodeEvent(chunk, plain, output);
    }
    return joinFrames(output);
  }

  end(): Buffer | null {
    if (this.#ended) return null;
    const output: Buffer[] = [];
    const last = this.decoder.flush();
    // An event without its end counts if it is whole; half of one is no event (WHATWG HTML 9.2.6).
    if (last !== null && (isDone(last.data) || isRecord(readJson(last.data, eventBounds)?.value))) {
      this.#take(last, output);
    }
    if (this.#ended) return joinFrames(output);
    // Without `[DONE]` nobody says that the choices which have not spoken yet do not come.
    if (this.tokenSeen && this.#chunks.choices.size < this.#asked) this.#fail(truncatedStream);
    else this.#complete();
    return joinFrames(output);
  }

  /** Where the plain deltas end that begin at `from`: between events, once one was found plain. */
  #plainUntil(chunk: Buffer, from: number): number {
    const template = this.#learnt();
    return template !== null && this.decoder.idle ? template.matchingBytes(chunk, from) : from;
  }

  /** Takes one event, or what there is of it; the place behind it, where the short way may be open again. */
  #decodeEvent(chunk: Buffer, from: number, output: Buffer[]): number {
    const end = chunk.indexOf(frameEndBytes, from);
    const next = end === -1 ? chunk.length : end + frameEndBytes.length;
    this.#decode(chunk.subarray(from, next), output);
    return next;
  }

  #decode(bytes: Buffer, output: Buffer[]): void {
    if (this.#ended) return;
    for (const event of this.decoder.push(bytes)) {
      this.#take(event, output);
      if (this.#ended) return;
    }
    if (this.decoder.overflowed) this.#fail(oversizedEvent);
  }

  get #ended(): boolean {
    return this.phase === 'finished' || this.phase === 'failed';
  }

  #fail(failure: UpstreamError): void {
    this.phase = 'failed';
    this.failure = failure;
  }

  /** What was used up is said with the failure. */
  #failStating(chunk: Untrusted<WireCompletion>, failure: UpstreamError): void {
    this.#stated.take(readUsage(chunk.usage), this.answerEnded);
    this.#fail(failure);
  }

  #take(event: SseEvent, output: Buffer[]): void {
    const { data } = event;
    if (event.type === '' && this.#learnt()?.matches(data) === true) {
      pushFrame(output, data);
      return;
    }
    if (event.type === 'ping') return;
    if (isDone(data)) {
      this.#complete();
      return;
    }
    const read = readJson(data, eventBounds);
    if (read?.text === '') return;
    const value = read?.value;
    if (event.type === 'error')
      this.#failStating(isRecord(value) ? value : {}, reportedFailure(value ?? read?.text));
    else if (!isRecord(value)) this.#fail(unreadableStream);
    else if (isErrorValue(value)) this.#failStating(value, reportedFailure(value));
    else this.#takeChunk(value, data, output);
  }

  #takeChunk(chunk: Untrusted<WireCompletion>, data: Buffer, output: Buffer[]): void {
    const failed = failedChoice(chunk.choices);
    if (failed !== null) {
      this.#failStating(chunk, reportedFailure(errorOfChoice(failed)));
      return;
    }
    const usage = readUsage(chunk.usage);
    this.#textBytes += deltaTextBytes(chunk);
    const effect = this.#chunks.take(chunk);
    this.#stated.take(usage, this.answerEnded);
    if (effect === 'skip') return;
    if (effect === null) {
      this.#fail(unreadableStream);
      return;
    }
    for (const { index, calls } of effect.owed) this.#emit(output, index, { tool_calls: calls }, null);
    const rewritten = effect.changed || data.includes(0x0a);
    pushFrame(output, rewritten ? Buffer.from(JSON.stringify(chunk)) : data);
    if (effect.token) this.#answering();
    if (this.tokenSeen && !rewritten && effect.plainField !== null) {
      const isLong = data.length > maxLessonLength;
      // What it came in may be a whole read, and is not to be kept for it.
      this.#lesson = { data: isLong ? data : ownCopy(data), field: effect.plainField };
      if (isLong) this.#learnt();
    }
  }

  /** The template at hand, learnt when there is an event to hold against it: a first token is out by then. */
  #learnt(): PlainTemplate | null {
    const lesson = this.#lesson;
    if (lesson !== null) {
      this.#lesson = null;
      this.#textBytes += this.#template?.textBytes ?? 0;
      this.#template = PlainTemplate.learn(lesson.data, lesson.field, this.#maxEventBytes);
    }
    return this.#template;
  }

  #answering(): void {
    this.phase = 'answering';
    this.tokenSeen = true;
  }

  #emit(output: Buffer[], index: number, delta: object, finishReason: string | null): void {
    output.push(Buffer.from(chunkFrame(chunkFrameStart(this, index), delta, finishReason)));
  }

  /** The vendor's end, marked or not: an answer is whole only when every choice seen said why it ended. */
  #complete(): void {
    if (!this.tokenSeen) this.#fail(emptyStream);
    else if (!this.answerEnded) this.#fail(truncatedStream);
    else this.phase = 'finished';
  }
}
