import { frameStart } from '../../src/core/answer/sse-frame.ts';
import type { ProviderName } from '../../src/core/provider-name.ts';
import type { StreamContext, StreamTranslator } from '../../src/providers/provider.ts';
import { providers } from '../../src/providers/registry.ts';

/** All that a stream translator can be seen to have done. */
export interface StreamResult {
  readonly output: string;
  readonly phase: StreamTranslator['phase'];
  readonly tokenSeen: boolean;
  readonly failure: StreamTranslator['failure'];
  readonly usage: StreamTranslator['usage'];
  readonly wireUsage: StreamTranslator['wireUsage'];
  readonly head: { readonly id: string; readonly created: number; readonly model: string };
  readonly finishReasons: readonly string[];
}

/** Feeds the pieces and the clean end to a fresh translator. Bytes, so that a cut character stays as it is. */
export function readStream(
  provider: ProviderName,
  context: StreamContext,
  pieces: Iterable<Buffer>,
): StreamResult {
  const translator = providers[provider].streamTranslator(context);
  const output: Buffer[] = [];
  for (const piece of pieces) {
    const written = translator.push(piece);
    if (written !== null) output.push(Buffer.from(written));
  }
  const rest = translator.end();
  if (rest !== null) output.push(rest);
  const { phase, tokenSeen, failure, usage, wireUsage, id, created, model, finishReasons } = translator;
  return {
    output: Buffer.concat(output).toString('latin1'),
    phase,
    tokenSeen,
    failure,
    usage,
    wireUsage,
    head: { id, created, model },
    finishReasons,
  };
}

/** The bytes cut at the given positions. */
export function cutAt(bytes: Buffer, positions: readonly number[]): Buffer[] {
  const edges = [0, ...[...positions].sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
}

export type Chunk = { readonly choices: readonly ChunkChoice[]; readonly [field: string]: unknown };
export interface ChunkChoice {
  readonly index: number;
  readonly delta: Record<string, unknown>;
  readonly finish_reason?: string | null;
}

/** The chunks of an output: every event must be one `data:` line that holds JSON. */
export function chunksOf(output: string): Chunk[] {
  const text = Buffer.from(output, 'latin1').toString('utf8');
  if (text === '') return [];
  if (!text.endsWith('\n\n')) throw new Error('the output ends inside an event');
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((event) => {
      if (!event.startsWith(frameStart) || event.includes('\n'))
        throw new Error(`not a data event: ${event}`);
      return JSON.parse(event.slice(frameStart.length)) as Chunk;
    });
}

type Accumulated = Record<string, unknown>;

/**
 * The joining rule of openai-python (lib/streaming/_deltas.py): strings are concatenated, lists are joined by
 * `index`, `index` and `type` are replaced. What is sent twice comes out twice.
 */
export function accumulateLikePython(accumulated: Accumulated, delta: Accumulated): Accumulated {
  for (const [key, value] of Object.entries(delta)) {
    const known = accumulated[key];
    if (known === undefined || known === null || key === 'index' || key === 'type') {
      accumulated[key] = structuredClone(value);
    } else if (typeof known === 'string' && typeof value === 'string') accumulated[key] = known + value;
    else if (Array.isArray(known) && Array.isArray(value)) {
      for (const entry of value as Accumulated[]) {
        const index = entry['index'];
        if (typeof index !== 'number') throw new Error('list entries without an index cannot be joined');
        const present = (known as Accumulated[]).find((other) => other['index'] === index);
        if (present === undefined) known.push(structuredClone(entry));
        else accumulateLikePython(present, entry);
      }
    } else if (typeof known === 'object' && typeof value === 'object' && value !== null) {
      accumulateLikePython(known as Accumulated, value as Accumulated);
    }
  }
  return accumulated;
}
