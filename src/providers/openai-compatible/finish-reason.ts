/**
 * The finish reason a client of the OpenAI format knows. Together ends with `eos`; several servers say `stop`
 * after tool calls; none at all means the answer simply ended. Other values pass, since vendors add some.
 */
export function finishReason(given: unknown, calledTools: boolean): string {
  const reason = typeof given === 'string' && given !== '' && given !== 'eos' ? given : 'stop';
  return reason === 'stop' && calledTools ? 'tool_calls' : reason;
}
