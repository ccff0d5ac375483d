import { countedLimits } from '../../core/limits/limit-table.ts';
import { requestIdHeader } from '../request-id.ts';
import type { Route } from '../route-table.ts';
import { isOfAdminApi } from '../route-table.ts';

/** What OpenAPI says of headers on answers, by their names. */
type HeaderSchemas = Readonly<Record<string, { readonly description: string; readonly schema: object }>>;

const text = { type: 'string' } as const;

/** On everything that a key opens or makes, errors included. */
const caching: HeaderSchemas = {
  'Cache-Control': { description: '`no-store`; of a stream also `no-cache`', schema: text },
};

/** On the errors of whoever lacks the right key or token. */
const challenge: HeaderSchemas = {
  'WWW-Authenticate': { description: 'With a 401: how to send the key (RFC 6750)', schema: text },
};

/** On errors. */
const retry: HeaderSchemas = {
  'Retry-After': { description: 'Seconds until a repeat may help', schema: text },
  'X-Should-Retry': {
    description: 'Whether the OpenAI SDKs are to repeat it by themselves',
    schema: { type: 'string', enum: ['true', 'false'] },
  },
};

/** On the errors of overrides, which are their vendors'. */
const vendorsError: HeaderSchemas = {
  'X-Content-Type-Options': {
    description: 'The body is what its type says, no page for a browser',
    schema: { type: 'string', enum: ['nosniff'] },
  },
  'Retry-After-Ms': { description: 'As the vendor of an override says it', schema: text },
};

/** Every answer carries it. */
const requestId: HeaderSchemas = {
  [requestIdHeader.name]: { description: 'Id of the request', schema: text },
};
const tablesVersion: HeaderSchemas = {
  'X-Gateway-Tables-Version': { description: 'Of the tables that the request began with', schema: text },
};

/** On chat answers of users with such limits. */
const limitHeaders: HeaderSchemas = Object.fromEntries(
  countedLimits.flatMap((what) => [
    [
      `X-RateLimit-Limit-${what}`,
      { description: `How many ${what} a minute the user may have`, schema: text },
    ],
    [`X-RateLimit-Remaining-${what}`, { description: `How many of these ${what} are left`, schema: text }],
    [
      `X-RateLimit-Reset-${what}`,
      { description: `When there are as many ${what} again: \`250ms\`, \`12s\`, \`1m0s\``, schema: text },
    ],
  ]),
);

/** On answers to requests that used what the service was called before (SPEC 9.2). */
const formerNameHeaders: HeaderSchemas = {
  Deprecation: { description: 'Since when what the request used is deprecated (RFC 9745)', schema: text },
  Sunset: { description: 'When it ends (RFC 8594)', schema: text },
};

/** No tables have a say in what operators ask. */
export const answerHeadersOf = (route: Route): HeaderSchemas => ({
  ...requestId,
  ...caching,
  ...(!isOfAdminApi(route) && tablesVersion),
  ...(route.auth === 'service-key' && formerNameHeaders),
  ...(route.story === true && limitHeaders),
});

export const errorHeadersOf = (route: Route): HeaderSchemas => ({
  ...answerHeadersOf(route),
  ...challenge,
  ...retry,
  ...(route.story === true && vendorsError),
});
