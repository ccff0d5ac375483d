import { check } from 'k6';
import http from 'k6/http';
import { Rate } from 'k6/metrics';
import { chat, checkStream, isPoliteRefusal, serviceKey } from './lib/gateway.js';
import { spikeThresholds } from './lib/thresholds.js';

/**
 * A quiet phase, a sudden many times of it, a quiet phase again. During the spike requests may be refused with 503 and
 * Retry-After; nothing may break, and afterwards everything is served as before.
 */

/** Requests per second in the quiet phases and in the spike. */
const quietRate = Number(__ENV.RATE ?? 10);
const peakRate = Number(__ENV.PEAK_RATE ?? 200);
const phaseSeconds = Number(__ENV.SECONDS ?? 90) / 3;

const served = new Rate('served');
http.setResponseCallback(http.expectedStatuses(200, 201, 503));

function phase(index, rate) {
  return {
    executor: 'constant-arrival-rate',
    rate,
    timeUnit: '1s',
    startTime: `${index * phaseSeconds}s`,
    duration: `${phaseSeconds}s`,
    preAllocatedVUs: rate,
    maxVUs: rate * 5,
  };
}

export const options = {
  scenarios: { before: phase(0, quietRate), spike: phase(1, peakRate), after: phase(2, quietRate) },
  thresholds: spikeThresholds,
};

export function setup() {
  return serviceKey();
}

export default function (key) {
  const response = chat(key, { stream: true });
  served.add(response.status === 200);
  if (response.status === 200) checkStream(response);
  else check(response, { 'refused as documented': isPoliteRefusal });
}
