import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  parseSelfHostedUrl,
  selfHostedEndpoint,
  vendorEndpoint,
} from '../../../src/core/net/self-hosted-url.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

// What it takes to parse one grows with the square of its letters.
test.each([
  ['letters beyond ASCII', '模'.repeat(300)],
  ['a user before it', `a:b@${'模'.repeat(300)}`],
  ['escapes', '%E6%A8%A1'.repeat(100)],
])('an endless host is refused and not parsed: %s', (_what, host) => {
  const parse = vi.fn();
  vi.stubGlobal('URL', parse);
  expect(parseSelfHostedUrl(`https://${host}/v1`)).toEqual({
    ok: false,
    message: 'must name a valid host.',
  });
  expect(parse).not.toHaveBeenCalled();
});

describe('accepts', () => {
  test.each([
    // given, kept
    ['https://llm.example.com', 'https://llm.example.com'],
    ['https://llm.example.com/', 'https://llm.example.com/'],
    ['https://llm.example.com/v1', 'https://llm.example.com/v1'],
    ['https://llm.example.com/v1/', 'https://llm.example.com/v1/'],
    ['https://llm.example.com:8443/a/b', 'https://llm.example.com:8443/a/b'],
    ['https://llm.example.com:443/v1', 'https://llm.example.com/v1'],
    ['HTTPS://LLM.Example.COM/V1', 'https://llm.example.com/V1'],
    ['https://llm.example.com./v1', 'https://llm.example.com/v1'],
    ['https://vllm/v1', 'https://vllm/v1'],
    ['https://8.8.8.8/v1', 'https://8.8.8.8/v1'],
    ['https://100.64.0.1/v1', 'https://100.64.0.1/v1'],
    ['https://[2606:4700::1111]/v1', 'https://[2606:4700::1111]/v1'],
    ['https://bücher.example/v1', 'https://xn--bcher-kva.example/v1'],
    ['https://host/a@b', 'https://host/a@b'],
    ['http://localhost', 'http://localhost'],
    ['http://localhost:11434/v1', 'http://localhost:11434/v1'],
    ['http://LOCALHOST:11434', 'http://localhost:11434'],
    ['http://localhost.:11434', 'http://localhost:11434'],
    ['http://ollama.localhost:11434/v1', 'http://ollama.localhost:11434/v1'],
    ['http://a.b.localhost', 'http://a.b.localhost'],
    ['http://127.0.0.1:8000', 'http://127.0.0.1:8000'],
    ['http://127.0.0.1.:8000', 'http://127.0.0.1:8000'],
    ['http://127.9.9.9', 'http://127.9.9.9'],
    ['http://10.0.0.1', 'http://10.0.0.1'],
    ['http://172.16.0.1', 'http://172.16.0.1'],
    ['http://172.31.255.255', 'http://172.31.255.255'],
    ['http://192.168.1.10:8080/v1', 'http://192.168.1.10:8080/v1'],
    ['http://169.254.1.1', 'http://169.254.1.1'],
    ['http://169.254.169.254', 'http://169.254.169.254'],
    ['http://[::1]:8000/v1', 'http://[::1]:8000/v1'],
    ['http://[fd12::1]', 'http://[fd12::1]'],
    ['http://[fe80::1]', 'http://[fe80::1]'],
    ['http://[::ffff:10.0.0.1]', 'http://[::ffff:a00:1]'],
    ['http://[::ffff:127.0.0.1]', 'http://[::ffff:7f00:1]'],
    // Odd spellings of loopback and private addresses are those addresses.
    ['http://127.1', 'http://127.0.0.1'],
    ['http://0x7f.1', 'http://127.0.0.1'],
    ['http://0x7f000001', 'http://127.0.0.1'],
    ['http://2130706433', 'http://127.0.0.1'],
    ['http://017700000001', 'http://127.0.0.1'],
    ['http://0177.0.0.1', 'http://127.0.0.1'],
    ['http://１２７.0.0.1', 'http://127.0.0.1'],
    ['http://%31%32%37.0.0.1', 'http://127.0.0.1'],
    ['http://167772161', 'http://10.0.0.1'],
  ])('%s', (given, kept) => {
    expect(parseSelfHostedUrl(given)).toEqual({ ok: true, url: kept });
  });
});

describe('refuses', () => {
  test.each([
    // http on a host that is public, or only looks local
    ['http://llm.example.com/v1', 'https'],
    ['http://8.8.8.8', 'https'],
    ['http://134744072', 'https'],
    ['http://0x08080808', 'https'],
    ['http://vllm', 'https'],
    ['http://vllm.default.svc.cluster.local', 'https'],
    ['http://127.0.0.1.example', 'https'],
    ['http://127.0.0.1.nip.io', 'https'],
    ['http://localhost.evil.com', 'https'],
    ['http://evillocalhost', 'https'],
    ['http://localhost.localdomain', 'https'],
    ['http://0.0.0.0', 'https'],
    ['http://0', 'https'],
    ['http://[::]', 'https'],
    ['http://100.64.0.1', 'https'],
    ['http://172.15.0.1', 'https'],
    ['http://172.32.0.1', 'https'],
    ['http://192.169.0.1', 'https'],
    ['http://192.0.2.1', 'https'],
    ['http://198.18.0.1', 'https'],
    ['http://240.0.0.1', 'https'],
    ['http://224.0.0.1', 'https'],
    ['http://255.255.255.255', 'https'],
    ['http://[64:ff9b::a00:1]', 'https'],
    ['http://[64:ff9b::a9fe:a9fe]', 'https'],
    ['http://[2002:a00:1::]', 'https'],
    ['http://[2002:7f00:1::1]', 'https'],
    ['http://[fec0::1]', 'https'],
    ['http://[::7f00:1]', 'https'],
    ['http://[::ffff:8.8.8.8]', 'https'],
    ['http://[2606:4700::1111]', 'https'],
    ['http://[ff02::1]', 'https'],
    // the shape of the address
    ['', 'absolute'],
    ['localhost:11434', 'absolute'],
    ['/v1', 'absolute'],
    ['//llm.example.com', 'absolute'],
    ['https:', 'absolute'],
    ['https://', 'absolute'],
    ['https:///v1', 'absolute'],
    ['https:llm.example.com', 'absolute'],
    ['https:/llm.example.com', 'absolute'],
    ['ftp://llm.example.com', 'absolute'],
    ['file:///etc/passwd', 'absolute'],
    ['unix:///var/run/docker.sock', 'absolute'],
    ['javascript:alert(1)', 'absolute'],
    ['ws://localhost', 'absolute'],
    ['https://[::1', 'absolute'],
    ['https://a b.example', 'spaces'],
    ['https://ex\tample.com', 'spaces'],
    ['https://example.com\n', 'spaces'],
    [' https://example.com', 'spaces'],
    ['https://example.com\u0000', 'spaces'],
    ['https:\\\\example.com', 'backslashes'],
    ['https://example.com\\@127.0.0.1', 'backslashes'],
    ['https://user@example.com', 'user name'],
    ['https://user:secret@example.com', 'user name'],
    ['https://@example.com', 'user name'],
    ['https://:@example.com', 'user name'],
    ['http://127.0.0.1@evil.example', 'user name'],
    ['https://example.com/?a=b', 'query'],
    ['https://example.com?', 'query'],
    ['https://example.com/v1#x', 'fragment'],
    ['https://example.com#@127.0.0.1', 'fragment'],
    ['https://example.com:0', 'port 0'],
    ['https://example.com:00', 'port 0'],
    ['https://example.com:65536', 'absolute'],
    ['https://example..com', 'valid host'],
    ['https://example.com..', 'valid host'],
    ['https://.', 'valid host'],
    ['http://.localhost', 'valid host'],
    [`https://${'a'.repeat(60)}.${'b.'.repeat(120)}example`, 'valid host'],
    [`https://example.com/${'a'.repeat(2048)}`, 'at most'],
    ['https://exa%00mple.com', 'absolute'],
    ['https://example.com:8 0', 'spaces'],
    ['https://999.999.999.999', 'absolute'],
  ])('%j', (given, word) => {
    const parsed = parseSelfHostedUrl(given);
    expect(parsed.ok).toBe(false);
    expect(parsed.ok ? '' : parsed.message).toContain(word);
  });
});

test('never throws, and keeps what it returned', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.string({ unit: 'binary' })), (text) => {
      const parsed = parseSelfHostedUrl(text);
      if (parsed.ok) expect(parseSelfHostedUrl(parsed.url)).toEqual(parsed);
    }),
  );
});

test.each([
  ['http://localhost:11434', 'http://localhost:11434', '/v1'],
  ['http://localhost:11434/', 'http://localhost:11434', '/v1'],
  ['http://localhost:11434/v1', 'http://localhost:11434', '/v1'],
  ['http://localhost:11434/v1/', 'http://localhost:11434', '/v1'],
  ['http://localhost:11434/v1//', 'http://localhost:11434', '/v1'],
  ['https://llm.example.com/openai/v2', 'https://llm.example.com', '/openai/v2'],
  ['https://[::1]:8000/api', 'https://[::1]:8000', '/api'],
])('a self_hosted call to %s goes to %s%s', (baseUrl, origin, prefix) => {
  expect(selfHostedEndpoint(baseUrl)).toEqual({ origin, prefix });
});

test.each([
  ['https://api.openai.com', 'https://api.openai.com', ''],
  ['https://api.openai.com/', 'https://api.openai.com', ''],
  ['https://api.openai.com/v1', 'https://api.openai.com', ''],
  ['https://api.openai.com/v1/', 'https://api.openai.com', ''],
  ['http://proxy.internal:8080/openai/v1', 'http://proxy.internal:8080', '/openai'],
  ['http://proxy.internal:8080/openai', 'http://proxy.internal:8080', '/openai'],
  ['https://api.sarvam.ai/v2', 'https://api.sarvam.ai', '/v2'],
  ['https://api.example/notv1', 'https://api.example', '/notv1'],
])('the vendor address %s begins at %s%s', (baseUrl, origin, prefix) => {
  expect(vendorEndpoint(baseUrl)).toEqual({ origin, prefix });
});
