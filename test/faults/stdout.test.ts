/** Whoever reads stdout stops or leaves: neither a request nor the end of the process waits for it. */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { chatOk } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startGateway } from '../harness/gateway/start-gateway.ts';

/** Their access lines, of about 500 bytes, are more than a pipe (64 KiB) and the reader's own buffers hold. */
const requests = 1000;

const readers: [name: string, act: (gateway: GatewayUnderTest) => void][] = [
  ['has stopped reading', ({ process }) => process.stdout?.pause()],
  ['has gone', ({ process }) => process.stdout?.destroy()],
];

test.each(readers)('a reader of stdout that %s delays no request and no stop', async (_name, act) => {
  const gateway = await startGateway();
  try {
    const user = await registerWithKeys(gateway.url);
    act(gateway);
    for (let sent = 0; sent < requests; sent += 50) {
      await Promise.all(Array.from({ length: 50 }, () => chatOk(user.client)));
    }
    const exit = once(gateway.process, 'exit');
    gateway.process.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  } finally {
    gateway.process.stdout?.resume();
    await gateway.stop('SIGKILL');
  }
});
