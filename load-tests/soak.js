import { check } from 'k6';
import { chat, checkJson, checkStream, logRows, serviceKey } from './lib/gateway.js';
import { watchMemory } from './lib/memory.js';
import { memoryThresholds, soakThresholds } from './lib/thresholds.js';

/**
 * A steady rate for a long time, streams and JSON in turn; the last third must be as good as the first, and where
 * METRICS_URL names the metrics of the gateway's only replica, its memory may not grow.
 */

/** Requests per second. */
const rate = Number(__ENV.RATE ?? 20);
const thirdSeconds = Number(__ENV.SECONDS ?? 3_600) / 3;
/** For the last scrape. */
const MEMORY_SPARE_SECONDS = 30;

function third(index) {
  return {
    executor: 'constant-arrival-rate',
    rate,
    timeUnit: '1s',
    startTime: `${index * thirdSeconds}s`,
    duration: `${thirdSeconds}s`,
    // Enough for answers that take ten seconds.
    preAllocatedVUs: rate,
    maxVUs: rate * 10,
  };
}

const metricsUrl = __ENV.METRICS_URL;
const memoryWatch = {
  executor: 'per-vu-iterations',
  exec: 'memory',
  startTime: `${thirdSeconds}s`,
  maxDuration: `${2 * thirdSeconds + MEMORY_SPARE_SECONDS}s`,
};

export const options = {
  scenarios: {
    early: third(0),
    middle: third(1),
    late: third(2),
    ...(metricsUrl ? { memory: memoryWatch } : {}),
  },
  thresholds: { ...soakThresholds, ...(metricsUrl ? memoryThresholds : {}) },
};

export function setup() {
  return { key: serviceKey(), since: new Date().toISOString() };
}

export default function ({ key }) {
  if (__ITER % 2 === 0) checkStream(chat(key, { stream: true }));
  else checkJson(chat(key));
}

/** The first third is left out: a process that warms up grows. */
export function memory() {
  watchMemory(metricsUrl, 2 * thirdSeconds);
}

/** What was served must stand in the log, as it was served. */
export function teardown({ key, since }) {
  const rows = logRows(key, since) ?? [];
  check(rows, {
    'the log has rows': () => rows.length > 0,
    'every row is a success': () => rows.every(({ status }) => status === 'success'),
  });
}
