/** Some vendors refuse ids over 40 characters when a client replays them; this keeps well below. */
const seedLength = 24;

/** An id for a tool call that came without one. The same call of the same answer gets the same id. */
export function toolCallId(seed: string, choiceIndex: number, callIndex: number): string {
  const letters = seed.replace(/[^A-Za-z0-9]/g, '').slice(-seedLength);
  return `call_${letters}_${choiceIndex}_${callIndex}`;
}
