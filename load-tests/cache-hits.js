import { check, fail, sleep } from 'k6';
import { Rate } from 'k6/metrics';
import { chat, checkJson, serviceKey } from './lib/gateway.js';
import { cacheThresholds } from './lib/thresholds.js';

/** The same few prompts again and again: after the first time no vendor is asked. */
export const options = { vus: 20, duration: '1m', thresholds: cacheThresholds };

const PROMPTS = 8;
/** How often a new entry is looked for before the cache counts as off. */
const TRIES = 20;
const caching = { 'x-gateway-cache': 'true' };
const cacheHits = new Rate('cache_hits');

/** `{ key, prompts }`, each prompt with the content that is now in the cache. */
export function setup() {
  const key = serviceKey();
  const prompts = [];
  for (let index = 0; index < PROMPTS; index += 1)
    prompts.push(prime(key, `Prompt ${index} of ${Date.now()}`));
  return { key, prompts };
}

function prime(key, prompt) {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const response = chat(key, { prompt, headers: caching, name: 'prime' });
    if (response.status !== 200) fail(`Priming the cache was answered ${response.status}: ${response.body}`);
    if (response.json('gateway.cache_hit')) {
      return { prompt, content: response.json('choices.0.message.content') };
    }
    sleep(0.1);
  }
  return fail('The answers do not enter the cache; several replicas need a Redis in common.');
}

export default function ({ key, prompts }) {
  const { prompt, content } = prompts[Math.floor(Math.random() * prompts.length)];
  const answer = checkJson(chat(key, { prompt, headers: caching }));
  const { gateway } = answer;
  cacheHits.add(gateway?.cache_hit === true);
  check(answer, {
    'the cached content': () => answer.content === content,
    'served by the cache': () => gateway?.provider === 'cache' && gateway.residency_actual === 'cache',
    'a hit costs nothing': () => gateway?.cost_usd === '0.000000',
  });
}
