import { z } from 'zod';
import type { ProviderName } from '../provider-name.ts';
import { isUserServer } from '../provider-name.ts';
import { registerKeySchema } from './account-requests.ts';
import type { NewProviderKey } from './new-provider-key.ts';
import { checkProviderKey } from './new-provider-key.ts';

/** More keys than one application has providers. */
export const maxMountedKeys = 100;

const keysSchema = z.array(registerKeySchema).min(1).max(maxMountedKeys);

/** `message` names the entry and its field, and holds nothing of a key. */
export type MountedKeys =
  | { readonly ok: true; readonly keys: readonly NewProviderKey[] }
  | { readonly ok: false; readonly message: string };

const refuse = (index: number, field: string, message: string): MountedKeys => ({
  ok: false,
  message: `${index}.${field}: ${message}`,
});

/** The provider keys of a sidecar, each as `POST /v1/keys` takes it, and together what one user may have. */
export function readMountedKeys(document: unknown): MountedKeys {
  const parsed = keysSchema.safeParse(document);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { ok: false, message: `${issue?.path.join('.') || 'the document'}: ${issue?.message}` };
  }
  const keys: NewProviderKey[] = [];
  const vendors = new Set<ProviderName>();
  for (const [index, entry] of parsed.data.entries()) {
    const checked = checkProviderKey(entry);
    if (!checked.ok) return refuse(index, checked.field, checked.message);
    const { provider } = checked.key;
    // A mode and an override would each take another one of them.
    if (!isUserServer(provider) && vendors.has(provider)) {
      return refuse(index, 'provider', `A key for ${provider} is already in the file.`);
    }
    vendors.add(provider);
    keys.push(checked.key);
  }
  return { ok: true, keys };
}
