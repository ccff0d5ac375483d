import { z } from 'zod';
import { providerNames } from './provider-name.ts';

/** Text that Postgres can hold and a person can read: no control characters, no lone surrogates. */
const plainText = (name: string, most: number) =>
  z
    .string()
    .refine(
      (text) => text.isWellFormed() && !/\p{Cc}/u.test(text),
      `${name} holds characters that are not allowed`,
    )
    .refine((text) => [...text].length <= most, `${name} may have at most ${most} characters`);

/** Longest address that mail systems carry (RFC 5321 4.5.3.1). */
const maxEmailLength = 254;

/** `POST /v1/users` (SPEC 4.1). The address is checked without surrounding space and echoed as given. */
export const registerUserSchema = z.strictObject({
  email: z
    .string()
    .max(maxEmailLength + 16, 'must be a valid e-mail address')
    .refine((text) => text.trim().length <= maxEmailLength && z.email().safeParse(text.trim()).success, {
      message: 'must be a valid e-mail address',
    }),
});

/** Longest label, in code points (SPEC 8). */
const maxLabelLength = 128;
const maxRegionLength = 128;
const maxSecretLength = 8192;
const maxUrlLength = 2048;

/** `POST /v1/keys` (SPEC 4.2). Which fields go with which provider is checked by the route. */
export const registerKeySchema = z.strictObject({
  provider: z.enum(providerNames),
  api_key: z
    .string()
    .min(1, 'must not be empty')
    .max(maxSecretLength, { abort: true })
    // Nothing but spaces is no key. One way to match it, or the cost grows with the square of the length.
    .regex(/^ *[\x21-\x7e][\x20-\x7e]*$/, 'must be printable ASCII, since it travels in a header'),
  base_url: z.string().max(maxUrlLength).nullish(),
  declared_region: plainText('declared_region', maxRegionLength)
    .refine((text) => text.trim() !== '', 'must not be empty')
    .nullish(),
  label: plainText('label', maxLabelLength).nullish(),
});

export type RegisterKeyBody = z.infer<typeof registerKeySchema>;

/** True when an override can name a key by this label: `self_hosted/<label>:<model>` is split at `/` and `:`. */
export function canBeNamed(label: string): boolean {
  return label.trim() !== '' && !/[/:]/.test(label);
}
