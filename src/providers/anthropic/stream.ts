import { noExtras } from '../../core/answer/answer-extras.ts';
import type { WireUsage } from '../../core/answer/chat-completion.ts';
import type { SseEvent } from '../../core/answer/sse-decoder.ts';
import { SseDecoder } from '../../core/answer/sse-decoder.ts';
import { frameEndBytes } from '../../core/answer/sse-frame.ts';
import type { Usage } from '../../core/answer/usage.ts';
import { keptName } from '../answer-limits.ts';
import { joinFrames } from '../chunk-frame.ts';
import type { JsonRecord, Untrusted } from '../json-value.ts';
import { eventBounds, isRecord, mayBeText, readJson, textOf } from '../json-value.ts';
import type { StreamContext, StreamPhase, StreamTranslator, UpstreamError } from '../provider.ts';
import {
  emptyStream,
  oversizedEvent,
  reportedFailure,
  truncatedStream,
  unreadableStream,
} from '../stream-failure.ts';
import { callsAreWhole } from '../whole-calls.ts';
import { ChunkOutput } from './chunk-output.ts';
import { PlainDeltas, plainKinds } from './plain-deltas.ts';
import { endsForNoCalls, finishReasonOf } from './stop-reason.ts';
import { ToolBlocks } from './tool-blocks.ts';
import { UsageReader } from './usage.ts';
import type { AnswerBlock, EventDelta, Message, MessageEvent } from './wire.ts';

/** Stream of the Messages API as OpenAI chunks (Claude docs: Streaming messages). Unknown events are ignored. */
export class AnthropicStream implements StreamTranslator {
  phase: StreamPhase = 'prefix';
  tokenSeen = false;
  failure: UpstreamError | null = null;
  textBytes = 0;
  readonly extras = noExtras;
  id: string;
  readonly created: number;
  model: string;
  readonly #maxEventBytes: number;
  readonly decoder: SseDecoder;
  readonly #usage = new UsageReader();
  readonly #tools: ToolBlocks;
  readonly #output = new ChunkOutput(this);
  /** Of the block at hand, once a delta of it was translated. */
  #plain: PlainDeltas | null = null;
  /** There is one choice. */
  #finishReason: string | null = null;

  constructor(context: StreamContext) {
    this.id = context.fallbackId;
    this.created = context.createdSeconds;
    this.model = context.model;
    this.#maxEventBytes = context.maxEventBytes;
    this.decoder = new SseDecoder(context.maxEventBytes);
    this.#tools = new ToolBlocks(context.fallbackId);
  }

  get usage(): Usage {
    return this.#usage.usage(this.answerEnded && this.#usage.outputStated);
  }

  get keptBytes(): number {
    return this.#tools.keptBytes;
  }

  get answerEnded(): boolean {
    return this.#finishReason !== null;
  }

  get finishReasons(): readonly string[] {
    return this.#finishReason === null ? [] : [this.#finishReason];
  }

  get wireUsage(): WireUsage | null {
    return this.#usage.wire;
  }

  push(chunk: Buffer): Buffer | null {
    const output: Buffer[] = [];
    let position = 0;
    while (position < chunk.length && !this.#ended) {
      const plain = this.decoder.idle ? this.#plain : null;
      const frames = plain?.translate(chunk, position) ?? null;
      if (plain === null || frames === null) position = this.#decodeEvent(chunk, position);
      else {
        this.textBytes += plain.textBytes;
        position = plain.end;
      }
      const made = frames ?? this.#output.take();
      if (made !== null) output.push(made);
    }
    return joinFrames(output);
  }

  end(): Buffer | null {
    if (this.#ended) return null;
    const last = this.decoder.flush();
    // An event without its end counts if it is whole; half of one is no event (WHATWG HTML 9.2.6).
    if (last !== null && isRecord(readJson(last.data, eventBounds)?.value)) this.#take(last);
    if (!this.#ended) this.#complete();
    return this.#output.take();
  }

  /** Takes one event, or what there is of it; the place behind it. */
  #decodeEvent(chunk: Buffer, from: number): number {
    const end = chunk.indexOf(frameEndBytes, from);
    const next = end === -1 ? chunk.length : end + frameEndBytes.length;
    for (const event of this.decoder.push(chunk.subarray(from, next))) {
      this.#take(event);
      if (this.#ended) return next;
    }
    if (this.decoder.overflowed) this.#fail(oversizedEvent);
    return next;
  }

  get #ended(): boolean {
    return this.phase === 'finished' || this.phase === 'failed';
  }

  #fail(failure: UpstreamError): void {
    this.phase = 'failed';
    this.failure = failure;
  }

  /** A chunk that holds a token: from here on falling back is no longer free. */
  #emitToken(delta: JsonRecord, finishReason: string | null = null): void {
    this.#output.add(delta, finishReason);
    this.phase = 'answering';
    this.tokenSeen = true;
  }

  #emitText(field: 'content' | 'reasoning_content', given: unknown): void {
    const text = this.#textOf(given);
    this.textBytes += Buffer.byteLength(text);
    if (text !== '') this.#emitToken({ [field]: text });
  }

  #textOf(given: unknown): string {
    if (!mayBeText(given)) this.#fail(unreadableStream);
    return textOf(given);
  }

  #take(event: SseEvent): void {
    if (event.type === 'ping') return;
    const read = readJson(event.data, eventBounds);
    if (read?.text === '') return;
    if (read?.text === '[DONE]') {
      this.#complete();
      return;
    }
    const value = read?.value;
    if (event.type === 'error') this.#fail(reportedFailure(value ?? read?.text));
    else if (!isRecord(value)) this.#fail(unreadableStream);
    else this.#takeEvent(event.type, value);
  }

  /** `name`: of the frame, for events whose data does not say what they are. */
  #takeEvent(name: string, event: Untrusted<MessageEvent>): void {
    switch (textOf(event.type) || name) {
      case 'message_start':
        this.#start(isRecord(event.message) ? event.message : {});
        break;
      case 'content_block_start':
        this.#startBlock(event.index, isRecord(event.content_block) ? event.content_block : {});
        break;
      case 'content_block_delta':
        this.#takeDelta(event.index, isRecord(event.delta) ? event.delta : {});
        break;
      case 'content_block_stop':
        this.#emitCall(this.#tools.stop(event.index));
        break;
      case 'message_delta':
        this.#usage.take(event.usage);
        this.#stop(isRecord(event.delta) ? event.delta : {});
        break;
      case 'message_stop':
        this.#complete();
        break;
      case 'error':
        this.#fail(reportedFailure(event));
        break;
    }
  }

  #start(message: Untrusted<Message>): void {
    this.id = keptName(message.id) || this.id;
    this.model = keptName(message.model) || this.model;
    this.#output.rename();
    this.#plain = null;
    this.#usage.takeStart(message.usage);
    this.#output.begin();
  }

  #startBlock(index: unknown, block: Untrusted<AnswerBlock>): void {
    // Only what comes last can have been cut.
    this.#emitCalls(this.#tools.fill());
    if (block.type === 'text') this.#emitText('content', block.text);
    else if (block.type === 'thinking') this.#emitText('reasoning_content', block.thinking);
    else if (block.type === 'tool_use') this.#startCall(index, block);
  }

  #startCall(index: unknown, block: Untrusted<AnswerBlock>): void {
    const call = this.#tools.start(index, block);
    if (call === null) this.#fail(unreadableStream);
    else this.#emitCall(call);
  }

  #takeDelta(index: unknown, delta: Untrusted<EventDelta>): void {
    if (delta.type === 'text_delta' || delta.type === 'thinking_delta') {
      const { from, to } = plainKinds[delta.type];
      this.#emitText(to, delta[from]);
      // The next ones of a block that has shown a token are likely to be as plain.
      if (this.tokenSeen && this.#plain?.isOf(index, delta.type) !== true) {
        this.#plain = PlainDeltas.of(index, delta.type, this.#output.frameStart, this.#maxEventBytes);
      }
    } else if (delta.type === 'input_json_delta') {
      const json = this.#textOf(delta.partial_json);
      this.textBytes += Buffer.byteLength(json);
      this.#emitCall(this.#tools.append(index, json));
    }
  }

  /** Undefined: of a call that is none. */
  #emitCall(call: JsonRecord | null | undefined): void {
    if (call === undefined) this.#fail(unreadableStream);
    else if (call !== null) this.#emitToken({ tool_calls: [call] });
  }

  #emitCalls(calls: readonly JsonRecord[]): void {
    for (const call of calls) this.#emitCall(call);
  }

  #stop(delta: Untrusted<EventDelta>): void {
    const stopReason = textOf(delta.stop_reason);
    if (stopReason === '' || this.#finishReason !== null) return;
    const finishReason = finishReasonOf(stopReason);
    if (finishReason === null || endsForNoCalls(finishReason, this.#tools.count)) {
      this.#fail(unreadableStream);
      return;
    }
    this.#emitCalls(this.#tools.finish(callsAreWhole(stopReason)));
    this.#finishReason = finishReason;
    this.#emitToken({}, finishReason);
  }

  /** The end, marked or not: without a stop reason the answer is not known to be whole. */
  #complete(): void {
    if (!this.tokenSeen) this.#fail(emptyStream);
    else if (this.#finishReason === null) this.#fail(truncatedStream);
    else this.phase = 'finished';
  }
}
