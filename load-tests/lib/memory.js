import { check, sleep } from 'k6';
import http from 'k6/http';
import { Counter, Gauge } from 'k6/metrics';

/** Readings in one watch: enough for a straight line through V8's ups and downs. */
const READINGS = 60;
/** Between two readings at least. */
const LEAST_PAUSE_SECONDS = 0.5;
const BYTES_PER_MIB = 2 ** 20;

const readings = new Counter('memory_readings');
const growth = new Gauge('memory_growth_mib_per_minute');

/**
 * Reads the resident memory of the one process behind `url` (its Prometheus metrics) for so many seconds, then sets
 * `memory_growth_mib_per_minute` to the slope of the line that fits best.
 */
export function watchMemory(url, seconds) {
  const end = Date.now() + seconds * 1_000;
  const pause = Math.max(LEAST_PAUSE_SECONDS, seconds / READINGS);
  const points = [];
  while (Date.now() < end) {
    const response = http.get(url, { tags: { name: 'metrics' }, timeout: '10s' });
    const bytes = /^process_resident_memory_bytes (\S+)/m.exec(response.body ?? '')?.[1];
    check(response, { 'memory can be read': () => bytes !== undefined });
    if (bytes !== undefined) {
      points.push([Date.now() / 60_000, Number(bytes) / BYTES_PER_MIB]);
      readings.add(1);
    }
    sleep(pause);
  }
  if (points.length > 1) growth.add(slope(points));
}

/** Least squares. */
function slope(points) {
  const mean = (index) => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  let products = 0;
  let squares = 0;
  for (const [x, y] of points) {
    products += (x - meanX) * (y - meanY);
    squares += (x - meanX) ** 2;
  }
  return products / squares;
}
