/** The same suite over the other client, for as long as it can be chosen. */
process.env['GW_UPSTREAM_CLIENT'] = 'undici';
await import('./upstream-http.test.ts');
