/** A costly text that many ask for at once: it is made once for all who wait, and for nobody who has left. */
import { expect, test } from 'vitest';
import { SharedText } from '../../../src/http/admin/shared-text.ts';

const here = { destroyed: false };
const gone = { destroyed: true };

/** Counts what is made; `rested` ends the rest after it. */
function counted(make = (count: number): string => `text ${count}`) {
  let made = 0;
  let rested: () => void = () => undefined;
  const rest = () =>
    new Promise<void>((resolve) => {
      rested = resolve;
    });
  const text = new SharedText(async () => make(++made), rest);
  const ask = async (asker: { readonly destroyed: boolean } = here) => String(await text.for(asker));
  return { ask, made: () => made, rested: () => rested() };
}

test('all who wait share one text, those who come while it is made too', async () => {
  const { ask, made } = counted();
  const first = [ask(), ask()];
  await Promise.resolve();
  expect(await Promise.all([...first, ask()])).toEqual(['text 1', 'text 1', 'text 1']);
  expect(made()).toBe(1);
});

test('whoever comes later gets a new one, which all share who came in the rest before it', async () => {
  const { ask, made, rested } = counted();
  await ask();
  const later = [ask(), ask(), ask()];
  await new Promise(setImmediate);
  expect(made()).toBe(1);
  rested();
  expect(await Promise.all(later)).toEqual(['text 2', 'text 2', 'text 2']);
});

test('nothing is made for those who have left', async () => {
  const { ask, made, rested } = counted();
  expect(await Promise.all([ask(gone), ask(gone)])).toEqual(['', '']);
  expect(made()).toBe(0);
  rested();
  expect(await Promise.all([ask(gone), ask()])).toEqual(['text 1', 'text 1']);
});

test('one that fails is told to all who waited, and the next is made anew', async () => {
  const { ask, rested } = counted((count) => {
    if (count === 1) throw new Error('broken');
    return `text ${count}`;
  });
  const results = await Promise.allSettled([ask(), ask()]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const next = ask();
  rested();
  expect(await next).toBe('text 2');
});
