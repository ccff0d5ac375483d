import { describe, expect, test } from 'vitest';
import { Settlement } from '../../src/chat/settlement.ts';
import { callOf, heldKey, secretOf, World } from './story.ts';

describe('a settlement', () => {
  test('is written once, however often it is asked for', async () => {
    const world = new World();
    const settlement = new Settlement(callOf(), world.deps);
    const late = { type: 'api_error', message: 'late' } as const;
    await settlement.settle({ status: 'success' }, { latencyMs: 1 });
    await settlement.settle({ status: 'error', error: late }, { latencyMs: 2 });
    expect(world.rows.map(({ end }) => end.status)).toEqual(['success']);
    expect(world.telemetry.rows).toHaveLength(1);
  });

  test('has an error text without credentials and of bounded length', async () => {
    const world = new World();
    const settlement = new Settlement(callOf(), world.deps);
    const message = `Bearer ${secretOf(heldKey('openai'))} ${'x'.repeat(1000)}`;
    await settlement.settle({ status: 'error', error: { type: 'provider_error', message } });
    const text = world.rows[0]?.error;
    expect(text).toMatch(/^provider_error: \[redacted\] x+…$/);
    expect(text).toHaveLength(500);
  });
});
