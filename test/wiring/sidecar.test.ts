/** What a sidecar without a database reads and writes, without a process of its own. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSealer } from '../../src/adapters/system/sealer.ts';
import type { Account } from '../../src/chat/ports.ts';
import { registerKeySchema } from '../../src/core/account/account-requests.ts';
import { checkProviderKey } from '../../src/core/account/new-provider-key.ts';
import { hashServiceKey, newServiceKey } from '../../src/core/account/service-key.ts';
import { readSettings, SettingsError } from '../../src/settings.ts';
import { StdoutLines } from '../../src/telemetry/stdout-lines.ts';
import { openSidecarStores } from '../../src/wiring/sidecar.ts';
import type { Stores } from '../../src/wiring/stores.ts';
import { logRow } from '../adapters/postgres/log-rows.ts';

const serviceKey = newServiceKey(randomBytes(32));
const sealer = createSealer([{ id: 'memory', key: randomBytes(32) }]);
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sidecar-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A stdout that has everything at once, or of which nobody reads anything. */
function stdout(isRead = true): { lines: StdoutLines; text: () => string } {
  const blocks: string[] = [];
  const stream = {
    writableLength: 0,
    on: () => undefined,
    write: (block: string, left: () => void) => {
      blocks.push(block);
      if (isRead) left();
      else stream.writableLength += block.length;
      return isRead;
    },
  };
  return { lines: new StdoutLines(stream), text: () => blocks.join('') };
}

function open(keys: readonly object[], { lines } = stdout()): Stores {
  const path = join(folder, 'keys.json');
  writeFileSync(path, JSON.stringify(keys));
  const environment = { GW_PROFILE: 'sidecar', GW_SERVICE_KEY: serviceKey, GW_PROVIDER_KEYS_FILE: path };
  return openSidecarStores(readSettings(environment), sealer, lines, () => undefined);
}

const openai = { provider: 'openai', api_key: 'sk-1' };
const own = {
  provider: 'self_hosted',
  api_key: 'x',
  base_url: 'https://models.example.com/v1',
  declared_region: 'in',
};

describe('the keys file takes what POST /v1/keys takes', () => {
  test.each<[why: string, body: object, field: string | null]>([
    ['a vendor’s key', openai, null],
    ['with a label', { ...openai, label: 'main' }, null],
    ['with a label that no override has to name', { ...openai, label: 'a/b:c' }, null],
    ['with a region', { ...openai, declared_region: 'mars' }, 'declared_region'],
    ['with an address', { ...openai, base_url: 'https://a.example' }, 'base_url'],
    ['with both, null', { ...openai, base_url: null, declared_region: null, label: null }, null],
    ['an own server', own, null],
    ['on this host', { ...own, base_url: 'http://127.0.0.1:8000' }, null],
    ['without an address', { ...own, base_url: undefined }, 'base_url'],
    ['without a region', { ...own, declared_region: undefined }, 'declared_region'],
    ['in no region', { ...own, declared_region: null }, 'declared_region'],
    ['whose address is no URL', { ...own, base_url: 'models' }, 'base_url'],
    ['in the clear on the internet', { ...own, base_url: 'http://models.example.com' }, 'base_url'],
    ['with a label that can be named', { ...own, label: 'fast' }, null],
    ['with a label of an override’s marks', { ...own, label: 'a/b:c' }, 'label'],
    ['with a blank label', { ...own, label: ' ' }, 'label'],
  ])('%s', (_why, body, field) => {
    const checked = checkProviderKey(registerKeySchema.parse(body));
    expect(checked.ok ? null : checked.field).toBe(field);
    if (field === null) expect(open([body]).accounts.find(hashServiceKey(serviceKey))).not.toBeNull();
    else expect(() => open([openai, body])).toThrow(`GW_PROVIDER_KEYS_FILE: 1.${field}: `);
  });

  test.each(['openai', 'anthropic', 'together', 'sarvam'])('and of %s one', (provider) => {
    const twice = ['first', 'second'].map((key) => ({ provider, api_key: key }));
    expect(() => open([own, ...twice])).toThrow(SettingsError);
    expect(() => open([own, ...twice])).toThrow('GW_PROVIDER_KEYS_FILE: 2.provider: ');
  });

  test('and of own servers several', () => {
    const { accounts } = open([openai, own, { ...own, label: 'b' }]);
    const account = accounts.find(hashServiceKey(serviceKey)) as Account;
    expect(account.keys.map(({ label, declaredRegion }) => [label, declaredRegion])).toEqual([
      [null, null],
      [null, 'in'],
      ['b', 'in'],
    ]);
  });
});

test('rows are on stdout, or counted as lost to it', async () => {
  const read = stdout();
  const served = open([openai], read);
  await served.requestLog.record(logRow({ rowId: 'here' }));
  expect(read.text()).toContain('here');
  expect(served.requestLog.stats()).toMatchObject({ accepted: 1, written: 1, dropped: 0, printed: 0 });
  const unread = stdout(false);
  const lost = open([openai], unread);
  unread.lines.write('x'.repeat(17 * 1024 * 1024));
  await lost.requestLog.record(logRow({ rowId: 'nowhere' }));
  unread.lines.flush();
  expect(unread.text()).not.toContain('nowhere');
  expect(lost.requestLog.stats()).toMatchObject({ accepted: 1, written: 0, dropped: 1, printed: 0 });
});
