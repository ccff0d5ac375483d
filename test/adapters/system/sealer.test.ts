import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSealer } from '../../../src/adapters/system/sealer.ts';
import type { HeldKey, SealedSecret } from '../../../src/core/candidate.ts';
import { sealedByFirstVersion } from '../../harness/gateway/sealed-v1.ts';

const first = { id: 'first', key: randomBytes(32) };
const second = { id: 'second', key: randomBytes(32) };
const sealer = createSealer([first]);
const binding = {
  id: randomUUID(),
  userId: randomUUID(),
  provider: 'self_hosted',
  baseUrl: 'https://models.example/v1',
  declaredRegion: 'in',
} as const;

function held(sealed: SealedSecret, change: Partial<HeldKey> = {}): HeldKey {
  return {
    ...binding,
    label: null,
    createdAtMs: 0,
    sealed,
    ...change,
  };
}

function flipped(bytes: Buffer, index: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[index] = (copy[index] ?? 0) ^ 1;
  return copy;
}

describe('provider keys', () => {
  test('open to what was sealed, whatever it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(sealer.open(held(sealer.seal(text, binding)))?.reveal()).toBe(text);
      }),
    );
  });

  test('open again to the same, however long they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 3_000, size: 'max' }), (text) => {
        const key = held(sealer.seal(text, binding));
        const opened = [1, 2, 3].map(() => sealer.open(key)?.reveal());
        expect(opened).toStrictEqual([text, text, text]);
      }),
    );
  });

  test('that opened once still do not open as another record, nor after that with a byte changed', () => {
    const key = held(sealer.seal('sk-canary', binding));
    expect(sealer.open(key)?.reveal()).toBe('sk-canary');
    expect(sealer.open({ ...key, userId: randomUUID() })).toBeNull();
    const tampered = { ...key.sealed, ciphertext: flipped(key.sealed.ciphertext, 0) };
    expect(sealer.open({ ...key, sealed: tampered })).toBeNull();
    expect(sealer.open(key)?.reveal()).toBe('sk-canary');
  });

  test('do not open when any byte of nonce, ciphertext or tag was changed', () => {
    const sealed = sealer.seal('sk-canary', binding);
    for (let index = 0; index < sealed.ciphertext.length; index += 1) {
      const tampered = { ...sealed, ciphertext: flipped(sealed.ciphertext, index) };
      expect(sealer.open(held(tampered))).toBeNull();
    }
    for (let index = 0; index < sealed.nonce.length; index += 1) {
      const tampered = { ...sealed, nonce: flipped(sealed.nonce, index) };
      expect(sealer.open(held(tampered))).toBeNull();
    }
  });

  test('do not open with a tag cut down, nor with nothing left', () => {
    const sealed = sealer.seal('sk-canary', binding);
    for (let length = 0; length < sealed.ciphertext.length; length += 1) {
      const cut = { ...sealed, ciphertext: sealed.ciphertext.subarray(0, length) };
      expect(sealer.open(held(cut))).toBeNull();
    }
    expect(sealer.open(held({ ...sealed, nonce: Buffer.alloc(0) }))).toBeNull();
  });

  const ownPlace: [string, Partial<HeldKey>][] = [
    ['record', { id: randomUUID() }],
    ['user', { userId: randomUUID() }],
    ['provider', { provider: 'anthropic' as const }],
  ];
  const destination: [string, Partial<HeldKey>][] = [
    ['address', { baseUrl: 'https://thief.example/v1' }],
    ['address, which is none', { baseUrl: null }],
    ['region', { declaredRegion: 'us' }],
    ['region, which is none', { declaredRegion: null }],
    // A JSON array keeps the fields apart: what is cut from one and put to the next is another place.
    ['cut between fields', { baseUrl: 'https://models.example/v1","in', declaredRegion: '' }],
  ];

  test.each([...ownPlace, ...destination])('do not open in the place of another %s', (_name, change) => {
    expect(sealer.open(held(sealer.seal('sk-canary', binding), change))).toBeNull();
  });

  test('of a vendor do not open once an address or a region was written beside them', () => {
    const vendor = { ...binding, provider: 'openai', baseUrl: null, declaredRegion: null } as const;
    const sealed = sealer.seal('sk-canary', vendor);
    expect(sealer.open(held(sealed, vendor))?.reveal()).toBe('sk-canary');
    for (const change of [{ baseUrl: 'https://thief.example' }, { declaredRegion: 'in' }]) {
      expect(sealer.open(held(sealed, { ...vendor, ...change }))).toBeNull();
    }
  });

  describe('of the first version', () => {
    const old = (): SealedSecret => ({
      version: 1,
      masterKeyId: 'first',
      ...sealedByFirstVersion(first.key, 'sk-canary', { ...binding, recordId: binding.id }),
    });

    test.each([['own place', {}], ...destination])('open as before: %s', (_name, change) => {
      expect(sealer.open(held(old(), change))?.reveal()).toBe('sk-canary');
    });

    test.each(ownPlace)('do not open in the place of another %s', (_name, change) => {
      expect(sealer.open(held(old(), change))).toBeNull();
    });
  });

  test('do not open under another version than the one they were sealed with', () => {
    const sealed = sealer.seal('sk-canary', binding);
    expect(sealed.version).toBe(2);
    const ofFirst = sealedByFirstVersion(first.key, 'sk-canary', { ...binding, recordId: binding.id });
    for (const version of [1, 0, 3, Number.NaN]) {
      expect(sealer.open(held({ ...sealed, version }))).toBeNull();
    }
    expect(sealer.open(held({ version: 2, masterKeyId: 'first', ...ofFirst }))).toBeNull();
  });

  test('never use a nonce twice', () => {
    const nonces = new Set<string>();
    for (let seals = 0; seals < 5000; seals += 1) nonces.add(sealer.seal('x', binding).nonce.toString('hex'));
    expect(nonces.size).toBe(5000);
  });

  test('are sealed by the first key and opened by all', () => {
    const old = sealer.seal('sk-canary', binding);
    const rotated = createSealer([second, first]);
    expect(rotated.seal('sk-canary', binding).masterKeyId).toBe('second');
    expect(rotated.open(held(old))?.reveal()).toBe('sk-canary');
    expect(createSealer([second]).open(held(old))).toBeNull();
  });
});

describe('cache values', () => {
  test('open in their own place only', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.string(), fc.string(), (bytes, place, other) => {
        const sealed = sealer.sealValue(Buffer.from(bytes), place);
        expect(sealer.openValue(sealed, place)).toEqual(Buffer.from(bytes));
        if (place !== other) expect(sealer.openValue(sealed, other)).toBeNull();
      }),
    );
  });

  test('are null when changed or cut anywhere', () => {
    const sealed = sealer.sealValue(Buffer.from('an answer'), 'place');
    for (let index = 0; index < sealed.length; index += 1) {
      expect(sealer.openValue(flipped(sealed, index), 'place')).toBeNull();
      expect(sealer.openValue(sealed.subarray(0, index), 'place')).toBeNull();
    }
  });

  test('are null for any foreign bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(sealer.openValue(Buffer.from(bytes), 'place')).toBeNull();
      }),
    );
  });

  test('open after a rotation while the old key is live', () => {
    const sealed = sealer.sealValue(Buffer.from('an answer'), 'place');
    expect(createSealer([second, first]).openValue(sealed, 'place')).toEqual(Buffer.from('an answer'));
    expect(createSealer([second]).openValue(sealed, 'place')).toBeNull();
  });
});

test('a sealer without a key is refused', () => {
  expect(() => createSealer([])).toThrow('no sealing key is configured');
});
