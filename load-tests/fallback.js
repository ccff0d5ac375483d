import { Rate } from 'k6/metrics';
import { chat, checkJson, checkStream, serviceKey } from './lib/gateway.js';
import { fallbackThresholds } from './lib/thresholds.js';

/**
 * The first candidate fails every time and nobody may notice. With an API_KEY of your own, the user behind it must hold
 * a key that the first provider refuses; FAILING_PROVIDER names that provider.
 */
export const options = { vus: 20, duration: '1m', thresholds: fallbackThresholds };

const failingProvider = __ENV.FAILING_PROVIDER ?? 'openai';
const fellBack = new Rate('fell_back');

export function setup() {
  return serviceKey({ openai: 'load-failing' });
}

export default function (key) {
  note(checkStream(chat(key, { stream: true })));
  note(checkJson(chat(key)).gateway);
}

function note(gateway) {
  fellBack.add(gateway !== null && gateway.provider !== failingProvider);
}
