import { expect, test } from 'vitest';
import { residencyBinder, strictestResidency } from '../../../src/core/request/residency.ts';

const choices = ['india', null] as const;
const cases = choices.flatMap((asked) =>
  choices.flatMap((user) => choices.map((deployment) => [asked, user, deployment] as const)),
);

test.each(cases)('a request that asks for %s, of a user bound to %s, where %s holds', (...all) => {
  expect(strictestResidency(...all)).toBe(all.includes('india') ? 'india' : null);
  const [asked, user, deployment] = all;
  const words = [deployment && 'deployment', user && 'user', asked && 'request'];
  expect(residencyBinder(...all)).toBe(words.find((word) => word !== null) ?? null);
});
