import { storedId } from './account/stored-id.ts';
import type { HeldKey } from './candidate.ts';
import type { Override } from './request/chat-call.ts';

/** The key that an override goes by: that of the id, else the newest of the label; of all where nothing is named. */
export function overrideKey(
  { provider, selector }: Pick<Override, 'provider' | 'selector'>,
  keys: readonly HeldKey[],
): HeldKey | undefined {
  const held = keys.filter((key) => key.provider === provider);
  if (selector === null) {
    return held.reduce<HeldKey | undefined>(
      (newest, key) => (newest === undefined || key.createdAtMs >= newest.createdAtMs ? key : newest),
      undefined,
    );
  }
  // Ids are read without case, as in DELETE /v1/keys/{id}; labels are what people wrote.
  const id = storedId(selector);
  return held.find((key) => key.id === id) ?? held.findLast((key) => key.label === selector);
}
