import { z } from 'zod';
import { instantText } from '../instant-text.ts';
import { maxUrlLength } from '../net/self-hosted-url.ts';
import { isUserServer, providerNames, userServerNames, vendorNames } from '../provider-name.ts';
import { isEmail } from './email.ts';

/** No control characters, in the spelling of JSON Schema. */
const plainPattern = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$';

/** Text that Postgres can hold and a person can read: no control characters, no lone surrogates. */
const plainText = (most: number) =>
  z
    .string()
    .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), 'holds characters that are not allowed')
    .refine((text) => [...text].length <= most, `may have at most ${most} characters`)
    .meta({ maxLength: most, pattern: plainPattern });

/** More than any address has, with some white space around: what is longer is not looked at. */
const maxEmailText = 512;

/** `POST /v1/users` (SPEC 4.1). The address is checked without surrounding space and echoed as given. */
export const registerUserSchema = z.strictObject({
  email: z
    .string()
    .max(maxEmailText, { error: 'must be a valid e-mail address', abort: true })
    .refine(isEmail, 'must be a valid e-mail address'),
});

/** Longest label, in code points (SPEC 8). */
const maxLabelLength = 128;
const maxRegionLength = 128;
const maxSecretLength = 8192;

/** Nothing but spaces is no key. One way to match it, or the cost grows with the square of the length. */
const vendorSecret = /^ *[\x21-\x7e][\x20-\x7e]*$/;

function vendorSecretProblem(secret: string): string | null {
  if (secret === '') return 'must not be empty';
  return vendorSecret.test(secret) ? null : 'must be printable ASCII, since it travels in a header';
}

/** Which fields go with which provider, as the description shows it: `checkProviderKey` and the refinement below. */
const fieldsByProvider = [
  {
    title: 'A server of your own',
    required: ['base_url', 'declared_region'],
    properties: {
      provider: { enum: userServerNames },
      base_url: {
        type: 'string',
        format: 'uri',
        description:
          'https, or http where the host is localhost, *.localhost, or a private, loopback or link-local IP address',
      },
      declared_region: { type: 'string', pattern: '\\S' },
      label: {
        pattern: '^[^/:]*[^/:\\s][^/:]*$',
        description: 'at most 128 characters; neither `/` nor `:`, and not blank: overrides name it',
      },
    },
  },
  {
    title: 'A vendor',
    properties: {
      provider: { enum: vendorNames },
      api_key: { pattern: vendorSecret.source },
      base_url: { type: 'null' },
      declared_region: { type: 'null' },
    },
  },
];

/**
 * `POST /v1/keys` (SPEC 4.2). Which fields go with which provider is checked by the route. A server of the user's own
 * may have any placeholder for a key (`headerText` says what is sent of it), a vendor has one that a header can carry.
 */
export const registerKeySchema = z
  .strictObject({
    provider: z.enum(providerNames),
    api_key: z
      .string()
      .max(maxSecretLength, { abort: true })
      .refine((text) => text.isWellFormed(), 'holds half a character'),
    base_url: z.string().max(maxUrlLength).nullish(),
    declared_region: plainText(maxRegionLength)
      .refine((text) => text.trim() !== '', 'must not be empty')
      .nullish(),
    label: plainText(maxLabelLength).nullish(),
  })
  .superRefine(({ provider, api_key: secret }, context) => {
    const message = isUserServer(provider) ? null : vendorSecretProblem(secret);
    if (message !== null) context.addIssue({ code: 'custom', path: ['api_key'], message });
  })
  .meta({ oneOf: fieldsByProvider });

export type RegisterKeyBody = z.infer<typeof registerKeySchema>;

/** Whether it lies ahead is for whoever has a clock to say. */
const instant = instantText(z.string()).meta({ description: 'ISO 8601 with a time zone, in the future.' });

/** `POST /v1/service-keys`. */
export const newServiceKeySchema = z.strictObject({
  label: plainText(maxLabelLength).nullish(),
  expires_at: instant.nullish(),
});

/** True when an override can name a key by this label: `<provider>/<label>:<model>` is split at `/` and `:`. */
export function canBeNamed(label: string): boolean {
  return label.trim() !== '' && !/[/:]/.test(label);
}
