import { chat, checkJson, serviceKey } from './lib/gateway.js';
import { jsonThresholds } from './lib/thresholds.js';

/** JSON answers, one after the other per virtual user. */
export const options = { vus: 20, duration: '1m', thresholds: jsonThresholds };

export function setup() {
  return serviceKey();
}

export default function (key) {
  checkJson(chat(key));
}
