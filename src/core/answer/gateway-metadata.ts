import type { AnsweringProvider, ShownResidency } from '../settled-request.ts';
import type { JsonAnswer } from './json-answer.ts';
import { frame } from './sse-frame.ts';

/** The `gateway` block (SPEC 2.4). */
export interface GatewayMetadata {
  readonly provider: AnsweringProvider;
  readonly model: string;
  readonly mode: string;
  readonly cache_hit: boolean;
  readonly latency_ms: number;
  readonly cost_usd: string;
  readonly residency_actual: ShownResidency;
  readonly request_id: string;
}

/** As JSON, put together by hand, which saves 1.5 µs: the model's name alone can be any text, `model` in JSON. */
function blockText(block: GatewayMetadata, model: string): string {
  return (
    `{"provider":"${block.provider}","model":${model},"mode":"${block.mode}"` +
    `,"cache_hit":${block.cache_hit},"latency_ms":${block.latency_ms},"cost_usd":"${block.cost_usd}"` +
    `,"residency_actual":"${block.residency_actual}","request_id":"${block.request_id}"}`
  );
}

/** Splices the block into a completion's own text: the answer is not serialised a second time. */
export function withGatewayBlock(completion: JsonAnswer, metadata: GatewayMetadata): JsonAnswer {
  const end = completion.json.lastIndexOf('}');
  // Behind the last brace there is white space at most, a byte each.
  const after = completion.json.length - end;
  const model = JSON.stringify(metadata.model);
  const block = `,"gateway":${blockText(metadata, model)}}`;
  // All else in the block is ASCII: to measure it would put its parts together, 0.8 µs before they are written.
  const more = Buffer.byteLength(model) - model.length;
  return {
    json: completion.json.slice(0, end) + block,
    bytes: completion.bytes - after + block.length + more,
  };
}

export interface ChunkIdentity {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
}

function chunk(identity: ChunkIdentity, rest: Record<string, unknown>): string {
  const { id, created, model } = identity;
  return frame(JSON.stringify({ id, object: 'chat.completion.chunk', created, model, ...rest }));
}

/** What is said of a whole answer at its end. */
export interface AnswerTotals {
  /** Undefined for clients that did not ask for it with `include_usage`. */
  readonly usage: unknown;
  /** What the vendor said beside it, or of itself. */
  readonly extras: Readonly<Record<string, unknown>>;
}

/**
 * The final chunk before `[DONE]`: the block on `choices[0].delta` (SPEC 4.5, streaming rule 2), the vendor's extras,
 * and the usage where that was asked for. One chunk, since every chunk with usage is counted by some client, and a
 * last one without it makes others forget it (docs/decisions/0005).
 */
export function gatewayChunk(
  identity: ChunkIdentity,
  metadata: GatewayMetadata,
  { usage, extras }: AnswerTotals,
): string {
  const choices = [{ index: 0, delta: { gateway: metadata }, finish_reason: null }];
  return chunk(identity, { ...extras, choices, usage });
}
