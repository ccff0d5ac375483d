/** Ends at which a model had said its calls to their end, in the words of OpenAI and of Anthropic. */
const wholeEnds: ReadonlySet<unknown> = new Set([
  'stop',
  'tool_calls',
  'function_call',
  'tool_use',
  'end_turn',
]);

/**
 * True when the reason says that a call without arguments has none. Behind any other (`length`, `content_filter`, one
 * that we do not know) they may have been cut: `{}` made up for them would have an agent run half a call.
 */
export function callsAreWhole(reason: unknown): boolean {
  return wholeEnds.has(reason);
}
