import type { Urls } from './world.ts';

/** One thing that `npm run test:load` has k6 do. */
export interface Run {
  /** Of load-tests/. */
  readonly script: string;
  /** What is looked at, or noticed. */
  readonly title?: string;
  /** Of k6. */
  readonly args?: readonly string[];
  /** Of the script. */
  readonly env?: Readonly<Record<string, string>>;
  /** The threshold that must be crossed; without one, k6 must end well. */
  readonly crossed?: string;
}

const few = ['--vus', '4', '--duration', '5s'];
const eight = ['--vus', '4', '--iterations', '8'];

/** How long the vendor holds the first token for the key `load-hold`; the same in load-tests/vendor.mjs. */
const HOLD_MS = 600;
/** The vendor's streams have so many content chunks. */
export const exactly = { MIN_CHUNKS: '10', MAX_CHUNKS: '10' };
/**
 * Whether answers are right, and all there, is judged here; how fast they come, at the desk: a shared machine may stand
 * still for seconds. Below the 25 s after which a request counts as hung.
 */
export const patient = { TTFT_P95_MS: '20000', ANSWER_P95_MS: '24000', CACHED_P95_MS: '20000' };
/** Seconds are too short to tell a leak from a start: only that memory is read. */
const anyGrowth = { MEMORY_MIB_PER_MINUTE: '100000' };

/** What each script is asked to do. */
export const runs = ({ metricsUrl }: Urls): Run[] => [
  { script: 'chat-stream.js', args: few },
  { script: 'chat-json.js', args: few },
  { script: 'cache-hits.js', args: few },
  { script: 'fallback.js', args: few },
  { script: 'soak.js', env: { SECONDS: '6', RATE: '20', METRICS_URL: metricsUrl, ...anyGrowth } },
  { script: 'spike.js', env: { SECONDS: '6', RATE: '5', PEAK_RATE: '60' } },
  {
    script: 'chat-stream.js',
    title: 'the time to first byte that k6 measures is the time to the first token',
    args: few,
    env: { PROVIDER_KEY: 'load-hold', TTFT_LEAST_MS: String(HOLD_MS) },
  },
];

/**
 * What a script must notice, and the threshold that it must cross, among others perhaps. What checks nothing would pass
 * all of the above.
 */
export const failures = ({ vendorUrl }: Urls): Run[] => [
  {
    script: 'chat-stream.js',
    title: 'a vendor that cuts its streams',
    args: few,
    env: { PROVIDER_KEY: 'load-cut' },
    crossed: 'checks',
  },
  {
    script: 'chat-stream.js',
    title: 'streams without the gateway block, since no gateway is there',
    args: eight,
    env: { BASE_URL: vendorUrl, API_KEY: 'any' },
    crossed: 'whole_streams',
  },
  {
    script: 'chat-json.js',
    title: 'answers without the gateway block',
    args: eight,
    env: { BASE_URL: vendorUrl, API_KEY: 'any' },
    crossed: 'whole_answers',
  },
  {
    script: 'chat-json.js',
    title: 'a gateway that never answers',
    args: eight,
    env: { BASE_URL: vendorUrl, API_KEY: 'load-hang', TIMEOUT_SECONDS: '2' },
    crossed: 'http_req_failed{name:chat}',
  },
  {
    script: 'chat-stream.js',
    title: 'a wrong address',
    args: eight,
    env: { BASE_URL: 'http://127.0.0.1:1', API_KEY: 'any' },
    crossed: 'http_req_failed{name:chat}',
  },
  {
    script: 'chat-stream.js',
    title: 'that nothing was sent',
    // A thousandth of one user is none.
    args: ['--vus', '1', '--duration', '1s', '--execution-segment', '0:1/1000'],
    crossed: 'http_reqs{name:chat}',
  },
  {
    script: 'chat-stream.js',
    title: 'first tokens that come too late',
    args: eight,
    env: { PROVIDER_KEY: 'load-hold', TTFT_P95_MS: String(HOLD_MS / 2) },
    crossed: 'http_req_waiting{name:chat}',
  },
  {
    script: 'fallback.js',
    title: 'that no request falls back',
    args: eight,
    env: { FAILING_PROVIDER: 'sarvam' },
    crossed: 'fell_back',
  },
  {
    script: 'soak.js',
    title: 'memory that grows',
    env: { SECONDS: '6', RATE: '5', METRICS_URL: `${vendorUrl}/metrics` },
    crossed: 'memory_growth_mib_per_minute',
  },
];
