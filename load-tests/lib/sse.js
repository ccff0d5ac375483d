const DONE = 'data: [DONE]\n\n';

/**
 * What a complete stream body holds: `{ chunks, contentChunks, gatewayBlocks, gateway, isGatewayLast, hasEnd, error }`.
 * `chunks` counts the events before the end marker, `gateway` is the block of the final one of them or null,
 * `hasEnd` says that the body ends with exactly one `data: [DONE]`, `error` is an error event's body or null.
 */
export function readStream(body) {
  const events = dataOf(body ?? '');
  const found = {
    chunks: 0,
    contentChunks: 0,
    gatewayBlocks: 0,
    gateway: null,
    isGatewayLast: false,
    hasEnd: (body ?? '').endsWith(DONE) && events.indexOf('[DONE]') === events.length - 1,
    error: null,
  };
  for (const text of events) {
    if (text !== '[DONE]') countChunk(found, parse(text));
  }
  return found;
}

function countChunk(found, chunk) {
  const delta = chunk?.choices?.[0]?.delta;
  found.chunks += 1;
  if (chunk === null || chunk.error !== undefined) found.error = chunk?.error ?? 'not JSON';
  if (typeof delta?.content === 'string' && delta.content !== '') found.contentChunks += 1;
  found.isGatewayLast = delta?.gateway !== undefined;
  if (!found.isGatewayLast) return;
  found.gatewayBlocks += 1;
  found.gateway = delta.gateway;
}

function dataOf(body) {
  return body
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice('data: '.length));
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
