import { check, demoChat, demoHeaders, fail, registerUser, run, withDemoModel } from './gateway.mjs';

/** The demo model speaks for about two seconds; less between first and last chunk means that something held them back. */
const LEAST_SPREAD_MS = 300;
const TIMEOUT_MS = 60_000;

const advice = {
  nginx: 'nginx.ingress.kubernetes.io/proxy-buffering: "off" (ingress.preset: nginx sets it)',
  none: 'the annotation of your ingress controller that switches response buffering off (see ingress.preset)',
};

/** A streamed answer arrives piece by piece, on the whole way from the Ingress to the pod. */
await run('streaming', async () => {
  const { TEST_STREAM_URL: url, TEST_DEMO_ALLOWED: allowed, TEST_INGRESS_PRESET: preset } = process.env;
  if (allowed !== 'true') return 'skipped: the demo model may not be reached; set tests.podCidrs';
  const key = await registerUser(url);
  if (key === null) return 'skipped: registration.mode is "closed"';
  await withDemoModel(url, key, async () => {
    const spreadMs = await streamSpread(url, key);
    if (spreadMs >= LEAST_SPREAD_MS) return;
    fail(`all chunks arrived at once (${Math.round(spreadMs)} ms): a proxy buffers. Missing: ${advice[preset] ?? advice.none}`);
  });
});

/** Milliseconds between the arrival of the first and of the last content. */
async function streamSpread(url, key) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...demoHeaders },
    body: JSON.stringify({ ...demoChat, stream: true }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  check(response.status === 200, `the stream was answered ${response.status}`);
  const decoder = new TextDecoder();
  let text = '';
  let first = null;
  let last = null;
  for await (const bytes of response.body) {
    text += decoder.decode(bytes, { stream: true });
    first ??= performance.now();
    if (!text.includes('"gateway"')) last = performance.now();
  }
  check(text.trimEnd().endsWith('data: [DONE]'), 'the stream did not end with [DONE]');
  return (last ?? first) - first;
}

