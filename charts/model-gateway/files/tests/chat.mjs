import { call, check, demoChat, demoHeaders, registerUser, run, withDemoModel } from './gateway.mjs';

/** An answer waits 50 ms for its row; where Postgres is busy the row takes the way over the spool. */
const ROW_LIMIT_MS = 10_000;

/**
 * A user registers the demo model of this pod as an endpoint of its own, chats with it by override, and finds the row.
 * Where the outbound policy does not know the pod network, the refusal is what is proven.
 */
await run('chat', async () => {
  const { TEST_URL: url, TEST_DEMO_ALLOWED: allowed } = process.env;
  const key = await registerUser(url);
  if (key === null) return 'skipped: registration.mode is "closed"';
  let outcome;
  await withDemoModel(url, key, async () => {
    const chat = await call(`${url}/v1/chat/completions`, {
      method: 'POST',
      key,
      headers: demoHeaders,
      body: demoChat,
    });
    if (allowed === 'true') checkAnswer(chat);
    else check(chat.status === 502, `a private endpoint was answered ${chat.status}, though no CIDR allows it`);
    await checkRow(url, key, allowed === 'true' ? 'success' : 'error');
    outcome =
      allowed === 'true'
        ? 'ok'
        : 'ok, up to the outbound policy (to go through the demo model, open the pod network with selfHosted.allow on port 8081, and name it in tests.podCidrs)';
  });
  return outcome;
});

function checkAnswer({ status, body }) {
  check(status === 200, `the chat was answered ${status}: ${JSON.stringify(body)}`);
  check(body.choices?.[0]?.message?.content?.length > 0, 'the answer is empty');
  check(body.gateway?.provider === 'self_hosted', 'the answer has no gateway block of the demo model');
}

async function checkRow(url, key, status) {
  const deadline = Date.now() + ROW_LIMIT_MS;
  let row;
  do {
    const logs = await call(`${url}/v1/logs?limit=10`, { key });
    check(logs.status === 200, `the logs were answered ${logs.status}`);
    row = logs.body.data?.[0];
    if (row === undefined) await new Promise((resolve) => setTimeout(resolve, 100));
  } while (row === undefined && Date.now() < deadline);
  check(row?.mode === 'override' && row.status === status, `the log row is ${JSON.stringify(row)}`);
}
