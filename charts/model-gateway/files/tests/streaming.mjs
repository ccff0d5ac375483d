import { call, check, demoChat, demoHeaders, fail, registerUser, run, withDemoModel } from './gateway.mjs';

/**
 * The demo model sends a word every 40 ms, so each should arrive by itself. A proxy that buffers hands out whole buffers:
 * a dozen words or more even of the smallest, 4 KiB.
 */
const MOST_EVENTS_PER_PIECE = 4;
const TIMEOUT_MS = 60_000;

const missing = {
  nginx: 'nginx.ingress.kubernetes.io/proxy-buffering: "off" (ingress.preset: nginx sets it)',
  none: 'the annotation of your ingress controller that switches response buffering off (see ingress.preset)',
};
const tooShort =
  'Look for a timeout of your ingress controller or HTTPRoute that is shorter than an answer (see ingress.preset).';

/** A streamed answer arrives piece by piece, on the whole way from the Ingress to the pod. */
await run('streaming', async () => {
  const { TEST_STREAM_URL: url, TEST_DEMO_ALLOWED: allowed, TEST_INGRESS_PRESET: preset } = process.env;
  if (allowed !== 'true') {
    return 'skipped: the demo model may not be reached; open the pod network with selfHosted.allow on port 8081, and name it in tests.podCidrs';
  }
  const key = await registerUser(url);
  if (key === null) return 'skipped: registration.mode is "closed"';
  await withDemoModel(url, key, async () => {
    const { text, pieces } = await readStream(url, key);
    check(text.trimEnd().endsWith('data: [DONE]'), `the stream broke off before [DONE]. ${tooShort}`);
    const events = text.split('\n\n').length;
    if (events / pieces <= MOST_EVENTS_PER_PIECE) return;
    fail(`${events} events arrived in ${pieces} pieces: a proxy buffers. Missing: ${missing[preset] ?? missing.none}`);
  });
});

/** All that arrived, and in how many pieces; less than the whole when the connection broke. */
async function readStream(url, key) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...demoHeaders },
    body: JSON.stringify({ ...demoChat, stream: true }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  check(response.status === 200, `the stream was answered ${response.status}`);
  const decoder = new TextDecoder();
  let text = '';
  let pieces = 0;
  try {
    for await (const bytes of response.body) {
      text += decoder.decode(bytes, { stream: true });
      pieces += 1;
    }
  } catch {
    // Seen in the text, which has no end.
  }
  return { text, pieces };
}
