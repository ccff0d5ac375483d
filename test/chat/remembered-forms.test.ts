import { expect, test } from 'vitest';
import { rememberedForms } from '../../src/chat/remembered-forms.ts';

test('of the form that a server wants it is known for ten thousand keys, those used last', () => {
  const forms = rememberedForms();
  for (let key = 0; key < 10_000; key += 1) forms.learn(`key ${key}`, 'older');
  expect(forms.of('key 0')).toBe('older');
  forms.learn('one more', 'older');
  expect(['key 0', 'key 1', 'key 2'].map((key) => forms.of(key))).toEqual(['older', null, 'older']);
});
