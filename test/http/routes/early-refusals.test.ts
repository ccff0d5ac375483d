/** What is known to be refused is refused before its body is sent, and again where that became known meanwhile. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mountRoutes } from '../../../src/http/mount.ts';
import { chatHandlers, refuseNewWork } from '../../../src/http/routes/chat-completions.ts';
import { testTables } from '../../chat/story.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Client, Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

let edge: Edge;
let accepts = true;
const target = 'POST /v1/chat/completions';

beforeEach(async () => {
  accepts = true;
  edge = await startEdge((scope) => {
    const deps: Parameters<typeof chatHandlers>[0] = {
      answerChat: () => Promise.reject(new Error('it was let in')),
      acceptsWork: () => accepts,
      get life() {
        return edge.life;
      },
      limits: { admit: async () => null, refuseEarly: (_request, _reply, done) => done() },
      clock: { wallMs: () => 0 },
      tables: testTables,
      httpTelemetry: { legacyUsed: () => undefined, requestShed: () => undefined },
      accounts: { find: () => null },
      refreshAccount: async () => null,
    };
    mountRoutes(scope, chatHandlers(deps), [refuseNewWork(deps)]);
  });
});

afterEach(() => edge.close());

const reasons = [
  [
    'draining',
    () => {
      edge.life.to('draining');
      edge.life.to('closing');
    },
  ],
  [
    'log_full',
    () => {
      accepts = false;
    },
  ],
] as const;

async function answerOf(client: Client): Promise<string> {
  return eventually(async () => (client.text.includes('}}') ? client.text : undefined));
}

test.each(reasons)(
  '%s: a request is answered while all of its body is still to come',
  async (code, begin) => {
    begin();
    const client = edge.connect(head({ 'content-length': 1_000_000 }, target)).read();
    const answer = await answerOf(client);
    expect(answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(answer).toContain(`"code":"${code}"`);
    expect(edge.life.bodies.heldBytes).toBe(0);
  },
);

test.each(reasons)('%s: what was let in before is refused when its body is there', async (code, begin) => {
  const body = JSON.stringify({ model: 'gw/cheap', messages: [{ role: 'user', content: 'Hi' }] });
  const client = edge.connect(head({ 'content-length': body.length, expect: '100-continue' }, target)).read();
  await eventually(async () => client.text.includes('100 Continue') || undefined);
  begin();
  client.socket.write(body);
  const answer = await answerOf(client);
  expect(answer).toContain('HTTP/1.1 503 ');
  expect(answer).toContain(`"code":"${code}"`);
});
