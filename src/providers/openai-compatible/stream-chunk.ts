import { extrasOf, noExtras } from '../../core/answer/answer-extras.ts';
import { maxChoices } from '../../core/answer/answer-limits.ts';
import { keptName } from '../answer-limits.ts';
import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';
import type { StreamContext } from '../provider.ts';
import { choiceIndex } from './choice.ts';
import type { TextField } from './plain-template.ts';
import { plainTextField } from './plain-template.ts';
import { StreamChoice } from './stream-choice.ts';
import { ToolRoom } from './tool-room.ts';
import type { WireChoice, WireCompletion } from './wire.ts';

/** What one parsed chunk means for the stream; `chunk` was put into form in place. */
export interface ChunkEffect {
  readonly changed: boolean;
  readonly token: boolean;
  /** Fragments that have to go out first, by choice. */
  readonly owed: readonly { readonly index: number; readonly calls: readonly JsonRecord[] }[];
  /** Set when the chunk is a plain text delta, unchanged, and differs from the next one only in that text. */
  readonly plainField: TextField | null;
}

/** What a choice takes of the heap: it has the maps of its calls. */
const choiceBytes = 1_000;

/** Everything a stream knows of its chunks: who names it, and where its choices stand. */
export class ChunkReader {
  readonly choices = new Map<number, StreamChoice>();
  readonly #context: StreamContext;
  readonly #room = new ToolRoom();
  /** Of the first chunk. */
  #fingerprint: Readonly<Record<string, unknown>> = noExtras;
  #named = false;
  id: string;
  created: number;
  model: string;
  /** The first chunk's fingerprint and what the last chunk without choices says; never more than both of them. */
  extras: Readonly<Record<string, unknown>> = noExtras;

  constructor(context: StreamContext) {
    this.#context = context;
    this.id = context.fallbackId;
    this.created = context.createdSeconds;
    this.model = context.model;
  }

  /** Of heap, roughly. */
  get keptBytes(): number {
    return this.choices.size * choiceBytes + this.#room.keptBytes;
  }

  /** Every choice seen so far has its finish reason. */
  get ended(): boolean {
    for (const choice of this.choices.values()) if (choice.finishReason === null) return false;
    return this.choices.size > 0;
  }

  /** As they were sent to the client, in the order of the choices' indexes. */
  get finishReasons(): readonly string[] {
    const choices = [...this.choices.values()].sort((one, other) => one.index - other.index);
    return choices.flatMap(({ finishReason }) => finishReason ?? []);
  }

  /** Null: the chunk breaks the format. A chunk without choices is nothing for the client: `'skip'`. */
  take(chunk: Untrusted<WireCompletion>): ChunkEffect | 'skip' | null {
    const given = chunk.choices;
    if (!Array.isArray(given) || given.length === 0) {
      this.#takeExtras(chunk);
      return 'skip';
    }
    if (given.length > maxChoices) return null;
    let changed = this.#properEnvelope(chunk);
    let token = false;
    const owed: { index: number; calls: readonly JsonRecord[] }[] = [];
    for (const [position, value] of given.entries()) {
      if (!isRecord(value)) return null;
      const choice: Untrusted<WireChoice> = value;
      const state = this.#choice(choice.index, position);
      const effect = state?.take(choice) ?? null;
      if (state === null || effect === null) return null;
      changed ||= effect.changed;
      token ||= effect.token;
      if (effect.owed.length > 0) owed.push({ index: state.index, calls: effect.owed });
    }
    const plain = !changed && given.length === 1 && (chunk.usage ?? null) === null;
    return {
      changed,
      token,
      owed,
      plainField: plain ? this.#plainField(given[0] as Untrusted<WireChoice>) : null,
    };
  }

  /** Joined over all such chunks they would grow without end, and each chunk would cost what all before it said. */
  #takeExtras(chunk: Untrusted<WireCompletion>): void {
    const extras = this.#named ? extrasOf(chunk) : noExtras;
    if (extras !== noExtras) this.extras = { ...this.#fingerprint, ...extras };
  }

  #plainField(choice: Untrusted<WireChoice>): TextField | null {
    if ((choice.finish_reason ?? null) !== null) return null;
    return plainTextField(choice.delta as JsonRecord);
  }

  #choice(given: unknown, position: number): StreamChoice | null {
    const index = choiceIndex(given, position);
    if (index === null) return null;
    let choice = this.choices.get(index);
    if (choice === undefined) {
      choice = new StreamChoice(index, this.#context.fallbackId, this.#room);
      this.choices.set(index, choice);
    }
    return choice;
  }

  /** Fills in what names the answer, takes out what is not for the client. True when something changed. */
  #properEnvelope(chunk: Untrusted<WireCompletion>): boolean {
    let changed = false;
    const set = (field: keyof WireCompletion, value: unknown): void => {
      chunk[field] = value;
      changed = true;
    };
    const { id, created, model } = chunk;
    if (id !== this.id && keptName(id) === '') set('id', this.id);
    if (!Number.isSafeInteger(created)) set('created', this.created);
    if (model !== this.model && keptName(model) === '') set('model', this.model);
    if (!this.#named) {
      this.#named = true;
      this.id = chunk.id as string;
      this.created = chunk.created as number;
      this.model = chunk.model as string;
      this.#fingerprint = extrasOf({ system_fingerprint: chunk.system_fingerprint ?? null });
      this.extras = this.#fingerprint;
    }
    if (chunk.object !== 'chat.completion.chunk') set('object', 'chat.completion.chunk');
    for (const field of ['gateway', 'usage'] as const) {
      if ((chunk[field] ?? null) === null) continue;
      delete chunk[field];
      changed = true;
    }
    return changed;
  }
}
