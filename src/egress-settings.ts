import { z } from 'zod';
import type { Egress } from './core/net/egress.ts';
import { directEgress } from './core/net/egress.ts';
import { parseProxyUrl } from './core/net/egress-proxy.ts';
import { EgressError, parseNoProxy } from './core/net/no-proxy.ts';

/** The variables of `Egress`, for the environment's schema. */
export const egressVariables = {
  HTTPS_PROXY: z
    .string()
    .optional()
    .describe(
      "proxy through which `https` providers and users' endpoints are reached: `http://user:password@host:3128`, `https://…` for TLS to the proxy itself ([rules](docs/decisions/0021-egress-proxies.md)). This and the next two in lower case too",
    ),
  HTTP_PROXY: z.string().optional().describe('the same for `http` endpoints; also by CONNECT'),
  NO_PROXY: z
    .string()
    .optional()
    .describe(
      'what is reached without a proxy: names (with those below them), `.suffix`, addresses, networks, each with or without a port, or `*`',
    ),
  GW_EGRESS_PROXY_REGION: z
    .enum(['india', 'global'])
    .default('global')
    .describe('where these proxies stand: only through one in `india` go requests that must stay in India'),
};

const eitherCase = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'];

/** Names in lower case, as most tools take them, under the names of the schema. Throws EgressError. */
export function withoutLowerCase(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const merged = { ...environment };
  for (const name of eitherCase) {
    const small = merged[name.toLowerCase()];
    if (small === undefined || small === '') continue;
    // Without a proxy the third is of no interest, and in whatever order its entries stand.
    const isRead = name !== 'NO_PROXY' || Boolean(merged['HTTPS_PROXY'] || merged['HTTP_PROXY']);
    if (isRead && merged[name] !== undefined && merged[name] !== '' && merged[name] !== small)
      throw new EgressError(`${name} and ${name.toLowerCase()} are set and differ; keep one.`);
    merged[name] = small;
  }
  return merged;
}

function named<T>(name: string, text: string | undefined, read: (text: string) => T): T | null {
  if (text === undefined) return null;
  try {
    return read(text);
  } catch (error) {
    throw error instanceof EgressError ? new EgressError(`${name} ${error.message}`) : error;
  }
}

/** Throws EgressError with the name of the setting. Without a proxy NO_PROXY is of no interest, and not read. */
export function readEgress(env: z.infer<z.ZodObject<typeof egressVariables>>): Egress {
  const https = named('HTTPS_PROXY', env.HTTPS_PROXY, parseProxyUrl);
  const http = named('HTTP_PROXY', env.HTTP_PROXY, parseProxyUrl);
  if (https === null && http === null) return directEgress;
  const bypass = named('NO_PROXY', env.NO_PROXY, parseNoProxy) ?? [];
  return { https, http, bypass, residency: env.GW_EGRESS_PROXY_REGION };
}
