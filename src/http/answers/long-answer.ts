import type { LaterTurns } from '../../chat/later-turn.ts';

/** Of a list, written in one turn of the event loop: a thousand of the widest log rows take 8 ms of everybody's. */
export const itemsOfOneTurn = 100;

/** A JSON object without absent values. */
type Answer<A> = { readonly [Name in keyof A]: NonNullable<A[Name]> | null };

const isLongList = (value: unknown): value is readonly unknown[] =>
  Array.isArray(value) && value.length > itemsOfOneTurn;

/** The JSON of an answer, long lists in parts. */
function* jsonInParts(answer: object): Generator<undefined, Buffer> {
  const parts: Buffer[] = [];
  const add = (text: string) => parts.push(Buffer.from(text));
  let lead = '{';
  for (const [name, value] of Object.entries(answer)) {
    add(`${lead}${JSON.stringify(name)}:`);
    lead = ',';
    if (!isLongList(value)) {
      add(JSON.stringify(value));
      continue;
    }
    for (let at = 0; at < value.length; at += itemsOfOneTurn) {
      const items = JSON.stringify(value.slice(at, at + itemsOfOneTurn)).slice(1, -1);
      add(at === 0 ? `[${items}` : `,${items}`);
      yield;
    }
    add(']');
  }
  add('}');
  return Buffer.concat(parts);
}

/** The same answer, which is written as in several turns where a list of it is long. */
export async function writtenInTurns<A extends Answer<A>>(
  answer: A,
  reply: { serializer(write: () => string): unknown },
  later: Pick<LaterTurns, 'run'>,
): Promise<A> {
  if (!Object.values(answer).some(isLongList)) return answer;
  const json = await later.run(jsonInParts(answer));
  // Fastify takes bytes as well; its types do not say so.
  reply.serializer(() => json as unknown as string);
  return answer;
}
