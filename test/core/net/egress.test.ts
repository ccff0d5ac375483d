/**
 * What HTTPS_PROXY, HTTP_PROXY and NO_PROXY mean, and what stops the start. That connections heed it:
 * test/stores/egress-proxy.test.ts.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Egress } from '../../../src/core/net/egress.ts';
import { directEgress, mayPassProxies, proxyEndpoints, proxyFor } from '../../../src/core/net/egress.ts';
import type { EgressProxy } from '../../../src/core/net/egress-proxy.ts';
import { parseProxyUrl } from '../../../src/core/net/egress-proxy.ts';
import { EgressError, isBypassed, parseNoProxy } from '../../../src/core/net/no-proxy.ts';

const table = JSON.parse(readFileSync(join(import.meta.dirname, 'no-proxy.json'), 'utf8')) as {
  readonly read: readonly [text: string, host: string, port: number, bypassed: boolean][];
  readonly refused: readonly string[];
};

const basic = (login: string): string => `Basic ${Buffer.from(login).toString('base64')}`;

describe('NO_PROXY', () => {
  test.each(table.read)('"%s" for %s:%d: %s', (text, host, port, bypassed) => {
    expect(isBypassed(parseNoProxy(text), host, port)).toBe(bypassed);
  });

  test.each(table.refused)('"%s" is refused, and named', (text) => {
    expect(() => parseNoProxy(`ok.example,${text}`)).toThrow(EgressError);
    expect(() => parseNoProxy(`ok.example,${text}`)).toThrow(JSON.stringify(text));
  });
});

describe('a proxy URL', () => {
  test.each<[text: string, proxy: Omit<EgressProxy, 'authorization'>, login: string | null]>([
    ['http://proxy.example:3128', { secure: false, host: 'proxy.example', port: 3128 }, null],
    ['http://proxy.example:3128/', { secure: false, host: 'proxy.example', port: 3128 }, null],
    ['proxy.example:3128', { secure: false, host: 'proxy.example', port: 3128 }, null],
    ['http://proxy.example', { secure: false, host: 'proxy.example', port: 80 }, null],
    ['HTTPS://proxy.example', { secure: true, host: 'proxy.example', port: 443 }, null],
    ['http://10.0.0.5:3128', { secure: false, host: '10.0.0.5', port: 3128 }, null],
    ['https://[fd00::5]:3129', { secure: true, host: 'fd00::5', port: 3129 }, null],
    ['http://u:p@proxy:1', { secure: false, host: 'proxy', port: 1 }, 'u:p'],
    ['u:p@proxy:1', { secure: false, host: 'proxy', port: 1 }, 'u:p'],
    ['http://u@proxy:1', { secure: false, host: 'proxy', port: 1 }, 'u:'],
    ['http://corp%5Cu:a%40b%3Ac%@proxy:1', { secure: false, host: 'proxy', port: 1 }, 'corp\\u:a@b:c%'],
    ['http://u:pässword@proxy:1', { secure: false, host: 'proxy', port: 1 }, 'u:pässword'],
  ])('%s', (text, proxy, login) => {
    const { authorization, ...rest } = parseProxyUrl(text);
    expect(rest).toEqual(proxy);
    expect(authorization?.reveal() ?? null).toBe(login === null ? null : basic(login));
  });

  test.each([
    ['socks5://s3cret@proxy:1080', 'SOCKS'],
    ['ftp://u:s3cret@proxy', 'must be http://'],
    ['http://u:s3cret@', 'must be http://'],
    ['http://u:s3cret@proxy:port', 'must be http://'],
    ['http://u:s3cret@proxy:0', 'port'],
    ['http://u:s3cret@proxy:65536', 'port'],
    ['http://u:s3cret@proxy:1/path', 'must be http://'],
    ['http://u:s3cret@proxy:1?x=1', 'must be http://'],
    ['http://u:s3cret%ff@proxy:1', 'UTF-8'],
    ['http://u%3Av:s3cret@proxy:1', 'colon'],
    ['http://u:s3cret@pro xy:1', 'must be http://'],
    ['http://u:s3cret@fd00::5:3128', 'must be http://'],
  ])('%s is refused without a word of it', (text, why) => {
    expect(() => parseProxyUrl(text)).toThrow(EgressError);
    expect(() => parseProxyUrl(text)).toThrow(why);
    expect(() => parseProxyUrl(text)).not.toThrow(/s3cret/);
  });

  test('cannot be printed with its password', () => {
    const proxy = parseProxyUrl('http://u:s3cret@proxy:1');
    const printed = JSON.stringify(proxy) + String(proxy.authorization);
    expect(printed).not.toContain('s3cret');
    expect(printed).not.toContain(basic('u:s3cret').slice('Basic '.length));
  });
});

describe('a way out', () => {
  const [https, http] = [parseProxyUrl('http://one:1'), parseProxyUrl('http://two:2')];
  const egress: Egress = { https, http, bypass: parseNoProxy('in.example,10.0.0.0/8'), residency: 'global' };
  const to = (protocol: string, host: string, port = 443) => ({ protocol, host, port });

  test('leads through the proxy of its protocol, or past both', () => {
    expect(proxyFor(egress, to('https:', 'out.example'))).toBe(https);
    expect(proxyFor(egress, to('http:', 'out.example'))).toBe(http);
    expect(proxyFor(egress, to('https:', 'api.in.example'))).toBeNull();
    expect(proxyFor(egress, to('http:', '10.1.1.1'))).toBeNull();
    expect(proxyFor({ ...egress, https: null }, to('https:', 'out.example'))).toBeNull();
    expect(proxyFor(directEgress, to('https:', 'out.example'))).toBeNull();
  });

  test.each([
    ['no proxy', 'india', true, directEgress],
    ['a proxy somewhere', 'india', false, egress],
    ['a proxy somewhere', null, true, egress],
    ['only a proxy for http', 'india', false, { ...egress, https: null }],
    ['a proxy in India', 'india', true, { ...egress, residency: 'india' }],
    ['a proxy in India', null, true, { ...egress, residency: 'india' }],
  ] as const)('with %s, for residency %s: %s', (_name, requested, may, way) => {
    expect(mayPassProxies(way, requested)).toBe(may);
  });

  test('has its proxies among what is ours', () => {
    expect(proxyEndpoints(egress)).toEqual([
      { host: 'one', port: 1 },
      { host: 'two', port: 2 },
    ]);
    expect(proxyEndpoints(directEgress)).toEqual([]);
  });
});
