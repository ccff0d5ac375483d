import { setTimeout as sleep } from 'node:timers/promises';

/** Asks the gateway beside it; for ever, or once with the argument `once`. */
const url = 'http://127.0.0.1:8080/v1/chat/completions';
const headers = {
  authorization: `Bearer ${process.env.GATEWAY_KEY}`,
  'content-type': 'application/json',
  'x-gateway-override-model': 'self_hosted:demo',
};

async function ask(question) {
  const body = JSON.stringify({ model: 'gw/balanced', messages: [{ role: 'user', content: question }] });
  const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(30_000) });
  const { choices, error } = await answer.json();
  if (error) throw new Error(error.message);
  return choices[0].message.content;
}

const isOnce = process.argv[2] === 'once';
do {
  console.log(await ask('What time is it?'));
  if (!isOnce) await sleep(10_000);
} while (!isOnce);
