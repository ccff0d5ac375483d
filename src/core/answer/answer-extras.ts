type Extras = Readonly<Record<string, unknown>>;

/** What has a place of its own in the last chunk, or none at all. */
const ownFields: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'model',
  'choices',
  'usage',
  'gateway',
  'error',
  'obfuscation',
]);

/** JSON characters of what a vendor adds beside its usage: the timings of llama.cpp take some 300. */
const maxExtrasLength = 4096;

/** Nothing beside the usage. */
export const noExtras: Extras = Object.freeze({});

/**
 * What a vendor says of a whole answer beside what the format has a field for: `system_fingerprint`,
 * `service_tier`, `timings` and the like. Nulls say nothing; beyond a bound all of it is left out.
 */
export function extrasOf(answer: Extras): Extras {
  let extras: Record<string, unknown> | null = null;
  for (const name in answer) {
    if (answer[name] === null || ownFields.has(name)) continue;
    extras ??= {};
    extras[name] = answer[name];
  }
  if (extras === null || JSON.stringify(extras).length > maxExtrasLength) return noExtras;
  return extras;
}
