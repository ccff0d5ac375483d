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

/** No stream may begin sooner: set where the vendor is known to hold its first token so long. */
const leastTtftMs = __ENV.TTFT_LEAST_MS === undefined ? 0 : milliseconds('TTFT_LEAST_MS');
/** Growth of the resident memory, in MiB per minute. Half a MiB is 30 MiB in an hour, more than V8's own ups and downs. */
const memoryGrowth = Number(__ENV.MEMORY_MIB_PER_MINUTE ?? 0.5);

function milliseconds(name, preset) {
  const value = Number(__ENV[name] ?? preset);
  if (!(value > 0)) throw new Error(`${name} must be a number of milliseconds above 0.`);
  return value;
}

/** k6 counts a limit as kept when nothing was measured; with these a run that measured nothing fails. */
const SOME = 'count>0';
const answered = {
  checks: [CHECKS],
  'http_req_failed{name:chat}': [FAILED],
  'http_reqs{name:chat}': [SOME],
};
const someStreams = { whole_streams: [SOME] };
const someAnswers = { whole_answers: [SOME] };

export const streamThresholds = {
  ...answered,
  ...someStreams,
  // Response headers leave together with the first token, so the wait for them is the time to the first token.
  'http_req_waiting{name:chat}': [`p(95)<${ttftMs}`, `min>=${leastTtftMs}`],
  'http_req_duration{name:chat}': [`p(95)<${answerMs}`],
};

export const jsonThresholds = {
  ...answered,
  ...someAnswers,
  'http_req_duration{name:chat}': [`p(95)<${answerMs}`],
};

export const cacheThresholds = {
  ...answered,
  ...someAnswers,
  cache_hits: ['rate>0.99'],
  'http_req_duration{name:chat}': [`p(95)<${cachedMs}`],
};

export const fallbackThresholds = {
  ...streamThresholds,
  ...someAnswers,
  // No request may be answered by the vendor that is down, and none may fail because of it.
  fell_back: ['rate>0.99'],
};

/** The first and the last part of a soak keep the same limits: what leaks or piles up shows in the last one. */
export const soakThresholds = {
  ...answered,
  ...someStreams,
  ...someAnswers,
  'http_reqs{name:chat,scenario:early}': [SOME],
  'http_reqs{name:chat,scenario:late}': [SOME],
  'http_req_waiting{name:chat,scenario:early}': [`p(95)<${ttftMs}`],
  'http_req_waiting{name:chat,scenario:late}': [`p(95)<${ttftMs}`],
  'checks{scenario:late}': [CHECKS],
  // Requests that were not sent because too many others were still open: the rate was not held.
  dropped_iterations: ['rate<1'],
};

/** Beside them where the gateway's memory is watched. */
export const memoryThresholds = {
  memory_readings: [SOME],
  memory_growth_mib_per_minute: [`value<${memoryGrowth}`],
};

/** Under a spike a gateway may refuse, in the documented way; before and after it serves everything. */
export const spikeThresholds = {
  ...answered,
  ...someStreams,
  'http_reqs{name:chat,scenario:before}': [SOME],
  'http_reqs{name:chat,scenario:spike}': [SOME],
  'http_reqs{name:chat,scenario:after}': [SOME],
  'served{scenario:before}': ['rate>0.99'],
  'served{scenario:spike}': ['rate>0.1'],
  'served{scenario:after}': ['rate>0.99'],
  'http_req_waiting{name:chat,scenario:after}': [`p(95)<${ttftMs}`],
};
