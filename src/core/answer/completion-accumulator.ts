import { ByteBuffer } from '../byte-buffer.ts';
import { ExactReader } from '../json/exact-json.ts';
import { jsonBytes } from '../json/json-bytes.ts';
import { noExtras } from './answer-extras.ts';
import { maxChoices, maxToolCalls } from './answer-limits.ts';
import type { ChatCompletion, Choice, WireUsage } from './chat-completion.ts';
import { noWireUsage } from './chat-completion.ts';
import type { ChoiceInProgress } from './choice-in-progress.ts';
import { finishedChoice } from './choice-in-progress.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** Fields of a delta whose texts are joined, in the order vendors stream them. */
export const textFields = ['reasoning_content', 'reasoning', 'content', 'refusal'] as const;
/** What a delta may hold beside them. Unknown texts and numbers are vendors' remarks, and left out. */
const deltaFields: ReadonlySet<string> = new Set([...textFields, 'role', 'tool_calls', 'gateway']);
/** What a chunk may hold, in objects, beside what is kept of it. */
const chunkFields: ReadonlySet<string> = new Set(['choices', 'usage', 'timings']);
/** The same of a choice, of a fragment of a call and of its function. */
const choiceFields: ReadonlySet<string> = new Set(['delta']);
const callFields: ReadonlySet<string> = new Set(['function']);
const functionFields: ReadonlySet<string> = new Set();

function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

/**
 * True when `value` holds a list or an object whose joining rules we do not know, such as citations or audio: an answer
 * put together without it would not be the one that was sent.
 */
function holdsMore(value: JsonObject, known: ReadonlySet<string>): boolean {
  for (const name in value) {
    const member = value[name];
    if (typeof member === 'object' && member !== null && !known.has(name) && Object.keys(member).length > 0)
      return true;
  }
  return false;
}

const isText = (value: unknown): boolean => value == null || typeof value === 'string';

function isIndex(value: unknown, limit: number): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < limit;
}

const bytesPerUnit = 2;

/** Members of the chunk object that describe the whole answer, taken from the first chunk that has them. */
const headFields = ['id', 'created', 'model', 'system_fingerprint', 'service_tier'] as const;

/**
 * Puts the chunks of one streamed answer together again, so that it can be stored. Fed with the bytes that
 * went to the client, in any split; holds the text of the answer only, `maxBytes` at most (counted in
 * UTF-16 units, which is a lower bound of bytes).
 */
export class CompletionAccumulator {
  readonly #maxBytes: number;
  readonly #choices = new Map<number, ChoiceInProgress>();
  readonly #head: Record<string, unknown> = {};
  /** The line that is not complete yet. */
  readonly #carry = new ByteBuffer();
  /** Of all chunks: log-probabilities, of which a stream may be full, are not stored. */
  readonly #reader = new ExactReader();
  #size = 0;
  /** Of the storage that the texts have, and of strings. */
  #kept = 0;
  #broken = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What it keeps at the moment, in bytes of memory: up to four times its texts. */
  get heldBytes(): number {
    return this.#kept + this.#carry.capacity;
  }

  /** Takes SSE bytes. Never throws: what cannot be put together makes `complete` answer null. */
  push(bytes: Buffer): void {
    if (this.#broken) return;
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0 && !this.#broken; end = bytes.indexOf(10, start)) {
      this.#line(this.#wholeLine(bytes.subarray(start, end)).toString('utf8'));
      start = end + 1;
    }
    if (this.#broken) return;
    this.#carry.append(bytes.subarray(start));
    if (this.#carry.length > this.#maxBytes) this.#break();
  }

  #wholeLine(rest: Buffer): Buffer {
    if (this.#carry.length === 0) return rest;
    this.#carry.append(rest);
    return this.#carry.take();
  }

  /**
   * The whole answer once the stream has ended well, or null: too large, cut, or of a shape that cannot be
   * joined. `usage` is what settlement knows; zeros when nothing was reported. `extras` went to the client
   * behind what was pushed, and a hit has to repeat them.
   */
  complete(usage: WireUsage | null, extras: JsonObject = noExtras): ChatCompletion | null {
    if (holdsMore(extras, chunkFields)) return null;
    if (this.#broken || this.#carry.length > 0 || this.#choices.size === 0) return null;
    const { id, created, model, ...rest } = this.#head;
    if (typeof id !== 'string' || typeof created !== 'number' || typeof model !== 'string') return null;
    const choices: Choice[] = [];
    for (const [index, choice] of [...this.#choices].sort(([a], [b]) => a - b)) {
      const finished = finishedChoice(index, choice);
      if (finished === null) return null;
      choices.push(finished);
    }
    return { id, object: 'chat.completion', created, model, choices, usage: usage ?? noWireUsage, ...rest };
  }

  #break(): void {
    this.#broken = true;
    this.#kept = 0;
    this.#choices.clear();
    this.#carry.release();
  }

  #text(into: ByteBuffer, piece: string): void {
    const before = into.capacity;
    into.appendUtf16(piece);
    this.#kept += into.capacity - before;
    this.#grow(jsonBytes(piece));
  }

  /** A text that is kept as it came. */
  #string(text: string): string {
    this.#kept += bytesPerUnit * text.length;
    this.#grow(jsonBytes(text));
    return text;
  }

  /** By what it takes as it is stored: a megabyte of escapes is not written in vain. */
  #grow(by: number): void {
    this.#size += by;
    if (this.#size > this.#maxBytes) this.#break();
  }

  #line(line: string): void {
    if (!line.startsWith('data:')) return;
    const text = line.slice('data:'.length).trim();
    if (text === '[DONE]') return;
    let chunk: JsonObject | null;
    try {
      chunk = asObject(this.#reader.parse(text));
    } catch {
      chunk = null;
    }
    if (
      chunk === null ||
      chunk['error'] != null ||
      !Array.isArray(chunk['choices']) ||
      holdsMore(chunk, chunkFields)
    ) {
      this.#break();
      return;
    }
    for (const field of headFields) {
      const value = chunk[field];
      if (value == null || this.#head[field] !== undefined) continue;
      this.#head[field] = typeof value === 'string' ? this.#string(value) : value;
    }
    for (const choice of chunk['choices']) this.#choice(asObject(choice));
  }

  #choice(choice: JsonObject | null): void {
    const index = choice?.['index'];
    const delta = asObject(choice?.['delta']) ?? {};
    const unjoinable =
      choice === null ||
      choice['logprobs'] != null ||
      holdsMore(choice, choiceFields) ||
      holdsMore(delta, deltaFields) ||
      !isText(delta['content']);
    if (!isIndex(index, maxChoices) || unjoinable) {
      this.#break();
      return;
    }
    let kept = this.#choices.get(index);
    if (kept === undefined) {
      kept = { text: new Map(), toolCalls: new Map(), finishReason: null };
      this.#choices.set(index, kept);
    }
    for (const field of textFields) {
      const piece = delta[field];
      if (typeof piece !== 'string') continue;
      const text = kept.text.get(field) ?? new ByteBuffer();
      kept.text.set(field, text);
      // Joined as strings, pieces of one character would take fifty bytes each.
      this.#text(text, piece);
    }
    if (Array.isArray(delta['tool_calls'])) {
      for (const call of delta['tool_calls']) this.#toolCall(kept, asObject(call));
    }
    const reason = choice['finish_reason'];
    if (typeof reason === 'string') kept.finishReason = this.#string(reason);
  }

  #toolCall(choice: ChoiceInProgress, delta: JsonObject | null): void {
    const index = delta?.['index'];
    const named = asObject(delta?.['function']) ?? {};
    const unjoinable = delta === null || holdsMore(delta, callFields) || holdsMore(named, functionFields);
    if (!isIndex(index, maxToolCalls) || unjoinable) {
      this.#break();
      return;
    }
    let call = choice.toolCalls.get(index);
    if (call === undefined) {
      call = { id: '', name: '', arguments: new ByteBuffer() };
      choice.toolCalls.set(index, call);
    }
    const { id } = delta;
    const { name, arguments: piece } = named;
    // Some vendors repeat id and name on every fragment: the first one counts.
    if (call.id === '' && typeof id === 'string') call.id = this.#string(id);
    if (call.name === '' && typeof name === 'string') call.name = this.#string(name);
    if (typeof piece === 'string') this.#text(call.arguments, piece);
  }
}
