import { describe, expect, test } from 'vitest';
import { adminAddress, apiAddress, listenFailure } from '../../../src/core/net/listen-failure.ts';

const failure = (code: string): Error => Object.assign(new Error(`listen ${code}`), { code });

describe('a server that cannot listen', () => {
  test.each([
    ['EADDRINUSE', 'PORT: cannot listen on 10.0.0.1:80: the port is in use (EADDRINUSE).'],
    ['EACCES', 'PORT: cannot listen on 10.0.0.1:80: it is not allowed, as with ports below 1024 (EACCES).'],
    [
      'EADDRNOTAVAIL',
      'GW_HOST: cannot listen on 10.0.0.1:80: this machine has no such address (EADDRNOTAVAIL).',
    ],
    [
      'EAFNOSUPPORT',
      'GW_HOST: cannot listen on 10.0.0.1:80: this machine has no addresses of this kind (EAFNOSUPPORT).',
    ],
    ['ENOTFOUND', 'GW_HOST: cannot listen on 10.0.0.1:80: the name has no address (ENOTFOUND).'],
    ['EAI_AGAIN', 'GW_HOST: cannot listen on 10.0.0.1:80: the name has no address (EAI_AGAIN).'],
    ['EMFILE', 'PORT, GW_HOST: cannot listen on 10.0.0.1:80: listen EMFILE'],
  ])('names what to change and why: %s', (code, line) => {
    expect(listenFailure(apiAddress({ host: '10.0.0.1', port: 80 }), failure(code))).toBe(line);
  });

  test('is called by the settings of its own', () => {
    const address = adminAddress({ adminHost: '::1', adminPort: 9090 });
    expect(listenFailure(address, failure('EADDRINUSE'))).toMatch(
      /^GW_ADMIN_PORT: cannot listen on \[::1\]:9090: /,
    );
    expect(listenFailure(address, failure('EADDRNOTAVAIL'))).toMatch(/^GW_ADMIN_HOST: /);
    expect(listenFailure(address, 'thrown')).toBe(
      'GW_ADMIN_PORT, GW_ADMIN_HOST: cannot listen on [::1]:9090: thrown',
    );
  });
});
