/** A key that cannot be used: an attempt and a check of it say the same of it, to its owner and to operators. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { attempt } from '../../src/chat/attempt.ts';
import { Cancellation } from '../../src/chat/cancellation.ts';
import { checkKey } from '../../src/chat/key-check.ts';
import { callOf, candidateOf, heldKey, testTables, World } from './story.ts';

const tables = testTables();

test.each([
  ['that does not open', heldKey('openai', { label: 'cannot be opened' }), true, 'cannot be opened'],
  [
    'whose address cannot be read',
    heldKey('self_hosted', { baseUrl: 'nowhere' }),
    false,
    'address of this key cannot be read',
  ],
])('one %s', async (_name, key, isReported, text) => {
  const world = new World();
  const call = callOf({ tables });
  const candidate = candidateOf(key.provider, tables, key);
  const signal = new Cancellation();
  const occasion = { residency: 'global', residencyBound: null, requestId: 'check-1' } as const;

  const tried = await attempt(
    world.openAttempt(call, candidate),
    call,
    world.deps,
    performance.now() + 1000,
    signal,
    world.room(call),
  );
  const checked = await checkKey(key, occasion, world.deps, signal);

  const reason = tried.kind === 'failed' ? tried.failure.reason : tried.kind;
  expect(reason).toContain(text);
  expect(checked).toMatchObject({ verdict: 'unreachable', reason, status: null });
  expect(world.unopened).toEqual(
    isReported
      ? [
          [key.id, call.requestId],
          [key.id, 'check-1'],
        ]
      : [],
  );
  expect(world.transport.calls).toHaveLength(0);
});

test('a check whose server says nothing ends after ten seconds, with its call', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const world = new World();
  const occasion = { residency: 'global', residencyBound: null, requestId: 'check-1' } as const;
  let isOver = false;
  const checking = checkKey(heldKey('openai'), occasion, world.deps, new Cancellation());
  void checking.finally(() => {
    isOver = true;
  });
  const upstream = await world.transport.call(0);
  await vi.advanceTimersByTimeAsync(9_999);
  expect(isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isOver).toBe(true);
  expect(await checking).toMatchObject({ verdict: 'unreachable', reason: 'No answer within 10 s.' });
  expect(upstream.aborted).toBe(true);
});
