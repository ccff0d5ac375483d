import { LRUCache } from 'lru-cache';
import type { RequestForms } from './ports.ts';

/** Keys that are remembered because their server wants another form of request than the usual one. */
const maxKeys = 10_000;

/** Forms that the servers behind keys asked for, of the keys that were used last. */
export function rememberedForms(): RequestForms {
  const forms = new LRUCache<string, string>({ max: maxKeys });
  return { of: (keyId) => forms.get(keyId) ?? null, learn: (keyId, form) => void forms.set(keyId, form) };
}
