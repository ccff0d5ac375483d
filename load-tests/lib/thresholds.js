/**
 * Every limit that a load test can fail on. The defaults suit a gateway whose vendors answer at once (`npm run
 * test:load`); in front of real vendors raise the times by the environment, since they include the vendor's.
 */

/** Share of checks that must hold: one in a hundred may be an accident of the network, two are not. */
const CHECKS = 'rate>0.99';
const FAILED = 'rate<0.01';

/** 95th percentile to the first token; it is the gateway's and the vendor's time together. */
const ttftMs = milliseconds('TTFT_P95_MS', 1_000);
/** 95th percentile to the end of an answer. */
const answerMs = milliseconds('ANSWER_P95_MS', 5_000);
/** A cached answer asks no vendor, so this holds for every deployment. */
const cachedMs = milliseconds('CACHED_P95_MS', 500);

function milliseconds(name, preset) {
  const value = Number(__ENV[name] ?? preset);
  if (!(value > 0)) throw new Error(`${name} must be a number of milliseconds above 0.`);
  return value;
}

const answered = { checks: [CHECKS], 'http_req_failed{name:chat}': [FAILED] };

export const streamThresholds = {
  ...answered,
  // Response headers leave together with the first token, so the wait for them is the time to the first token.
  'http_req_waiting{name:chat}': [`p(95)<${ttftMs}`],
  'http_req_duration{name:chat}': [`p(95)<${answerMs}`],
};

export const jsonThresholds = {
  ...answered,
  'http_req_duration{name:chat}': [`p(95)<${answerMs}`],
};

export const cacheThresholds = {
  ...answered,
  cache_hits: ['rate>0.99'],
  'http_req_duration{name:chat}': [`p(95)<${cachedMs}`],
};

export const fallbackThresholds = {
  ...streamThresholds,
  // No request may be answered by the vendor that is down, and none may fail because of it.
  fell_back: ['rate>0.99'],
};

/** The first and the last part of a soak keep the same limits: what leaks or piles up shows in the last one. */
export const soakThresholds = {
  ...answered,
  'http_req_waiting{name:chat,scenario:early}': [`p(95)<${ttftMs}`],
  'http_req_waiting{name:chat,scenario:late}': [`p(95)<${ttftMs}`],
  'checks{scenario:late}': [CHECKS],
  // Requests that were not sent because too many others were still open: the rate was not held.
  dropped_iterations: ['rate<1'],
};

/** Under a spike a gateway may refuse, in the documented way; before and after it serves everything. */
export const spikeThresholds = {
  checks: [CHECKS],
  'http_req_failed{name:chat}': [FAILED],
  'served{scenario:before}': ['rate>0.99'],
  'served{scenario:spike}': ['rate>0.1'],
  'served{scenario:after}': ['rate>0.99'],
  'http_req_waiting{name:chat,scenario:after}': [`p(95)<${ttftMs}`],
};
