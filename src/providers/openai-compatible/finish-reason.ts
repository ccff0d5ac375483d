/**
 * The finish reason a client of the OpenAI format knows. Together ends with `eos`, and some servers give none or one
 * that is no text: all of that is `stop`. Several say `stop` after tool calls. Other texts pass: vendors add some.
 */
export function finishReason(given: unknown, calledTools: boolean): string {
  const reason = typeof given === 'string' && given !== '' && given !== 'eos' ? given : 'stop';
  return reason === 'stop' && calledTools ? 'tool_calls' : reason;
}
