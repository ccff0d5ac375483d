/** What a database URL means, and what stops the start. That both drivers act on it: test/adapters/postgres/connection-urls.test.ts. */

import { expect, test } from 'vitest';
import { DatabaseUrlError, parseDatabaseUrl } from '../../../src/core/net/database-url.ts';

const plain = {
  hosts: [{ host: 'db', port: 5432 }],
  user: null,
  password: '',
  database: null,
  applicationName: null,
  options: null,
  tls: null,
};

test.each([
  ['postgres://db', plain],
  ['postgresql://db/', plain],
  ['postgres://db:6432/gateway', { ...plain, hosts: [{ host: 'db', port: 6432 }], database: 'gateway' }],
  ['postgres://u@db', { ...plain, user: 'u' }],
  ['postgres://u:p@db', { ...plain, user: 'u', password: 'p' }],
  ['postgres://u:a%40b%2Fc@db', { ...plain, user: 'u', password: 'a@b/c' }],
  ['postgres://u:a@b@db', { ...plain, user: 'u', password: 'a@b' }],
  ['postgres://u:50%off@db', { ...plain, user: 'u', password: '50%off' }],
  ['postgres://u+v:a+b@db', { ...plain, user: 'u+v', password: 'a+b' }],
  ['postgres://db?user=u+v&password=pa+ss', { ...plain, user: 'u+v', password: 'pa+ss' }],
  ['postgres://db?password=%2B%20%26%3d50%off', { ...plain, password: '+ &=50%off' }],
  ['postgres://db?password=a=b&&pass%77ord=c%C3%A9', { ...plain, password: 'cé' }],
  ['postgres://db?application_name=', plain],
  ['postgres://u:a:b@db', { ...plain, user: 'u', password: 'a:b' }],
  ['postgres://[fd00::1]:6432/x', { ...plain, hosts: [{ host: 'fd00::1', port: 6432 }], database: 'x' }],
  ['postgres://[fd00::1]/x', { ...plain, hosts: [{ host: 'fd00::1', port: 5432 }], database: 'x' }],
  ['postgres:///x', { ...plain, hosts: [{ host: 'localhost', port: 5432 }], database: 'x' }],
  ['postgres://%2Fvar%2Frun/x', { ...plain, hosts: [{ host: '/var/run', port: 5432 }], database: 'x' }],
  [
    'postgres:///x?host=/var/run&sslmode=require',
    { ...plain, hosts: [{ host: '/var/run', port: 5432 }], database: 'x' },
  ],
  [
    'postgres://a/b?host=db&port=7&user=u&password=p&dbname=x',
    { ...plain, hosts: [{ host: 'db', port: 7 }], user: 'u', password: 'p', database: 'x' },
  ],
  [
    'postgres://db?application_name=a&options=-c%20x%3D1',
    { ...plain, applicationName: 'a', options: '-c x=1' },
  ],
  ...[
    'postgres://a:1,b:2/x?target_session_attrs=read-write',
    'postgres:///x?host=a,b&port=1,2&target_session_attrs=primary',
    'postgres://a:1,b:2/x',
  ].map((url): [string, object] => [
    url,
    {
      ...plain,
      hosts: [
        { host: 'a', port: 1 },
        { host: 'b', port: 2 },
      ],
      database: 'x',
    },
  ]),
  [
    'postgres://x?host=a,b&port=7',
    {
      ...plain,
      hosts: [
        { host: 'a', port: 7 },
        { host: 'b', port: 7 },
      ],
    },
  ],
])('%s', (url, target) => {
  expect(parseDatabaseUrl(url)).toEqual(target);
});

test.each([
  ['mysql://db/x', /must be postgres:/],
  ['/var/run x', /must be postgres:/],
  ['socket:/var/run?db=x', /must be postgres:/],
  ['postgres://u:pa#ss@db/x', /must be postgres:/],
  ['postgres://u:Canary2/abc+def=@db:5432/x', /must be postgres:/],
  ['postgres://u:Canary2/abc@db', /must be postgres:/],
  ['postgres://u:Canary2@db:Canary3/x', /must be postgres:/],
  ['postgres://u:pa?Canary2@db:5432/x', /a "\?" in a password/],
  ['postgres://u:pa?Canary2=Canary3@db:5432/x', /a "\?" in a password/],
  ['postgres://u:%ff@db/x', /not UTF-8/],
  ['postgres://db?password=%ff', /not UTF-8/],
  ['postgres://db?application+name=a', /not known: "application\+name"/],
  ['postgres://a,/x', /several hosts/],
  ['postgres://a,b/x?target_session_attrs=any', /several hosts/],
  ['postgres://x?host=/var/run,b', /several hosts/],
  ['postgres://x?host=a,b,c&port=1,2', /as many ports/],
  ['postgres://db:0/x', /port/],
  ['postgres://db:65536/x', /port/],
  ['postgres://db?port=5432,5433', /as many ports/],
  ['postgres://db?pgbouncer=true', /not known: "pgbouncer"/],
  ['postgres://db?statement_timeout=5', /not known: "statement_timeout"/],
  ['postgres://db?SSLMODE=require', /not known: "SSLMODE"/],
  ['postgres://db?sslmode=Require', /value of sslmode/],
  ['postgres://db?sslmode=allow', /value of sslmode/],
  ['postgres://db?sslmode=', /value of sslmode/],
  ['postgres://db?sslmode=toString', /value of sslmode/],
  ['postgres://db?ssl=yes', /value of ssl /],
  ['postgres://db?uselibpqcompat=1&sslmode=require', /value of uselibpqcompat/],
  ['postgres://db?uselibpqcompat=true&sslmode=verify-ca', /needs sslrootcert/],
  ['postgres://db?sslcert=a', /go together/],
  ['postgres://db?sslkey=a&sslmode=require', /go together/],
  ['postgres://db?sslnegotiation=maybe', /value of sslnegotiation/],
  ['postgres://db?sslnegotiation=direct&sslmode=disable', /without TLS/],
  ['postgres://db?channel_binding=require', /value of channel_binding/],
  ['postgres://db?target_session_attrs=standby', /value of target_session_attrs/],
  ['postgres://db?client_encoding=latin1', /value of client_encoding/],
  ['postgres://db?connect_timeout=soon', /value of connect_timeout/],
])('%s is refused, without the password', (url, message) => {
  const secret = url.replace('postgres://', 'postgres://u:hunter2@').replace('u:hunter2@u:', 'u:hunter2');
  expect(() => parseDatabaseUrl(url)).toThrow(DatabaseUrlError);
  expect(() => parseDatabaseUrl(url)).toThrow(message);
  expect(() => parseDatabaseUrl(secret)).not.toThrow(/hunter2|Canary/);
});
