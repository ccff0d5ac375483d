/** What REDIS_URL means, and what stops the start. That the driver acts on it: test/stores/redis.test.ts. */
import { expect, test } from 'vitest';
import { parseRedisUrl, RedisUrlError } from '../../../src/core/net/redis-url.ts';

const plain = {
  kind: 'server',
  hosts: [{ host: 'cache', port: 6379 }],
  primaryName: null,
  user: null,
  password: null,
  database: 0,
  sentinelUser: null,
  sentinelPassword: null,
  tls: null,
};
const noFiles = { rootCertPath: null, certPath: null, keyPath: null, serverName: null };

test.each([
  ['redis://cache', plain],
  ['redis://cache/', plain],
  ['redis://cache:6380/2', { ...plain, hosts: [{ host: 'cache', port: 6380 }], database: 2 }],
  ['redis://:p@cache', { ...plain, password: 'p' }],
  ['redis://u:a%40b%@cache', { ...plain, user: 'u', password: 'a@b%' }],
  ['redis://u+v:a+b@cache', { ...plain, user: 'u+v', password: 'a+b' }],
  [
    'redis://a?sentinel=m+n&sentinel_user=s+%2B%20t&sentinel_password=pa+ss%3D50%',
    {
      ...plain,
      kind: 'sentinel',
      hosts: [{ host: 'a', port: 26379 }],
      primaryName: 'm+n',
      sentinelUser: 's++ t',
      sentinelPassword: 'pa+ss=50%',
    },
  ],
  ['redis://[fd00::1]:7000', { ...plain, hosts: [{ host: 'fd00::1', port: 7000 }] }],
  ['rediss://cache', { ...plain, tls: noFiles }],
  [
    'rediss://cache?cacert=/a&cert=/b&key=/c&sni=n',
    { ...plain, tls: { rootCertPath: '/a', certPath: '/b', keyPath: '/c', serverName: 'n' } },
  ],
  [
    'redis://u:p@a,b:1/1?sentinel=main&sentinel_user=s&sentinel_password=t',
    {
      ...plain,
      kind: 'sentinel',
      hosts: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 1 },
      ],
      primaryName: 'main',
      user: 'u',
      password: 'p',
      database: 1,
      sentinelUser: 's',
      sentinelPassword: 't',
    },
  ],
  [
    'redis://a,b?cluster=true',
    {
      ...plain,
      kind: 'cluster',
      hosts: [
        { host: 'a', port: 6379 },
        { host: 'b', port: 6379 },
      ],
    },
  ],
])('%s', (url, target) => {
  expect(parseRedisUrl(url)).toEqual(target);
});

test.each([
  ['http://cache', /must be redis:/],
  ['redis://', /must be redis:/],
  ['redis://u:pa#ss@cache', /must be redis:/],
  ['redis://cache:x', /host:port/],
  ['redis://cache:0', /port/],
  ['redis://cache:65536', /port/],
  ['redis://fd00::1', /brackets/],
  ['redis://a,b', /several hosts/],
  ['redis://a,,b?cluster=true', /host:port/],
  ['redis://cache?family=6', /not known: "family"/],
  ['redis://u:pa?Canary2@cache:6379/0', /a "\?" in a password|must name host:port/],
  ['redis://u:Canary2/abc@cache:6379/0', /must be redis:/],
  ['redis://cache?sentinel=', /without the name/],
  ['redis://cache?sentinel=m&cluster=true', /both/],
  ['redis://cache?cluster=yes', /true or false/],
  ['redis://cache/1?cluster=true', /database/],
  ['redis://cache?sentinel_user=s', /no sentinel/],
  ['redis://cache?cacert=/a', /rediss/],
  ['rediss://cache?cert=/a', /go together/],
  ['redis://u:%ff@cache', /not UTF-8/],
  ['redis://cache?sentinel=m&sentinel_password=%ff', /not UTF-8/],
])('%s is refused', (url, message) => {
  expect(() => parseRedisUrl(url)).toThrow(RedisUrlError);
  expect(() => parseRedisUrl(url)).toThrow(message);
});
