import { chat, checkStream, serviceKey } from './lib/gateway.js';
import { streamThresholds } from './lib/thresholds.js';

/** Streams, one after the other per virtual user: time to the first token, and that every stream is whole. */
export const options = { vus: 20, duration: '1m', thresholds: streamThresholds };

export function setup() {
  return serviceKey();
}

export default function (key) {
  checkStream(chat(key, { stream: true }));
}
