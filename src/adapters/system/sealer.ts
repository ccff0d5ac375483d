import type { KeyObject } from 'node:crypto';
import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, randomBytes } from 'node:crypto';
import type { HeldKey, SealedSecret } from '../../core/candidate.ts';
import type { SealingKey } from '../../core/secret/sealing-key.ts';
import { Secret } from '../../core/secret/secret.ts';
import { GcmCounter, nonceBytes } from './gcm-counter.ts';

/** The version of the seal that new secrets get. */
export const sealVersion = 2;

/** What a sealed secret is bound to; the same ciphertext under another binding does not open. */
export type SealBinding = Pick<HeldKey, 'id' | 'userId' | 'provider' | 'baseUrl' | 'declaredRegion'>;

export interface Sealer {
  /** Id of the master key that seals now. */
  readonly currentKeyId: string;
  seal(plaintext: string, binding: SealBinding): SealedSecret;
  /** Null: it was tampered with, moved to another row, or its master key is gone. */
  open(key: HeldKey): Secret | null;
  /** For values of a shared cache. `aad` names the place the value is for. */
  sealValue(value: Buffer, aad: string): Buffer;
  /** Null when the value is not one that `sealValue` made for this `aad` under a live key. */
  openValue(sealed: Buffer, aad: string): Buffer | null;
}

const algorithm = 'aes-256-gcm';
/** Always given: without it Node accepts tags cut down to 4 bytes. */
const tagBytes = 16;
const saltBytes = 16;
const valueVersion = 1;

function encrypt(key: KeyObject, plaintext: Buffer, aad: Buffer): { nonce: Buffer; ciphertext: Buffer } {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(aad);
  return {
    nonce,
    ciphertext: Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]),
  };
}

/** Null when the tag does not fit. */
function decrypt(key: KeyObject, nonce: Buffer, ciphertext: Buffer, aad: Buffer): Buffer | null {
  if (nonce.length !== nonceBytes || ciphertext.length < tagBytes) return null;
  const tagStart = ciphertext.length - tagBytes;
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
    .setAAD(aad)
    .setAuthTag(ciphertext.subarray(tagStart));
  try {
    const plaintext = decipher.update(ciphertext.subarray(0, tagStart));
    // Of a mode without padding it gives no bytes more; it throws where the tag does not fit.
    decipher.final();
    return plaintext;
  } catch {
    return null;
  }
}

/**
 * A JSON array is unambiguous: no two bindings share a text, and its first word keeps the versions apart, so
 * that a secret opens under the version it was sealed with only. Null for a version nobody wrote.
 */
function providerKeyAad(version: number, binding: SealBinding): Buffer | null {
  const { id, userId, provider, baseUrl, declaredRegion } = binding;
  switch (version) {
    case 1:
      return Buffer.from(JSON.stringify(['gw-provider-key-1', id, userId, provider]));
    case sealVersion:
      return Buffer.from(
        JSON.stringify(['gw-provider-key-2', id, userId, provider, baseUrl, declaredRegion]),
      );
    default:
      return null;
  }
}

/**
 * One derived key per value: cached answers are too many to share a key, since random nonces are safe for
 * 2^32 uses only (NIST SP 800-38D 8.3). Provider keys stay far below that and use the master key itself.
 */
function valueKey(master: KeyObject, salt: Buffer): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', master, salt, 'gw-cache-value-1', 32)));
}

/** A master key and its way to open again what has been opened. */
interface Master {
  readonly key: KeyObject;
  readonly counter: GcmCounter;
}

const masterOf = (key: KeyObject): Master => ({ key, counter: new GcmCounter(key) });

/** Null when it was tampered with, or moved to another row. */
function openFirst({ key: master }: Master, key: HeldKey): string | null {
  const { version, nonce, ciphertext } = key.sealed;
  const aad = providerKeyAad(version, key);
  return aad === null ? null : (decrypt(master, nonce, ciphertext, aad)?.toString('utf8') ?? null);
}

/** What has opened once is frozen in memory: its tag need not be made again. */
function openAgain({ counter }: Master, { nonce, ciphertext }: SealedSecret): string {
  return counter.decrypt(nonce, ciphertext, ciphertext.length - tagBytes);
}

/**
 * Seals secrets with AES-256-GCM. The first key seals, all open (SPEC 1.2). At least one key is needed;
 * the settings guarantee their length and distinct ids.
 */
export function createSealer(keys: readonly SealingKey[]): Sealer {
  const current = keys[0];
  if (current === undefined) throw new Error('no sealing key is configured (GW_SEALING_KEYS)');
  // Key objects: with raw bytes Node makes one per call, which costs four times the decryption itself.
  const masters = new Map(keys.map(({ id, key }) => [id, masterOf(createSecretKey(key))]));
  const currentKey = createSecretKey(current.key);
  const keyId = Buffer.from(current.id, 'latin1');
  const header = Buffer.concat([Buffer.of(valueVersion, keyId.length), keyId]);
  /** Those whose tag fitted what they are bound to: the same one is opened for every request of its user. */
  const whole = new WeakSet<HeldKey>();
  return {
    currentKeyId: current.id,
    seal(plaintext, binding) {
      const aad = providerKeyAad(sealVersion, binding) as Buffer;
      const sealed = encrypt(currentKey, Buffer.from(plaintext, 'utf8'), aad);
      return { version: sealVersion, masterKeyId: current.id, ...sealed };
    },
    open(key) {
      const { sealed } = key;
      const master = masters.get(sealed.masterKeyId);
      if (master === undefined) return null;
      if (whole.has(key)) return new Secret(openAgain(master, sealed));
      const plaintext = openFirst(master, key);
      if (plaintext === null) return null;
      whole.add(key);
      return new Secret(plaintext);
    },
    sealValue(value, aad) {
      const salt = randomBytes(saltBytes);
      const { nonce, ciphertext } = encrypt(valueKey(currentKey, salt), value, Buffer.from(aad, 'utf8'));
      return Buffer.concat([header, salt, nonce, ciphertext]);
    },
    openValue(sealed, aad) {
      const idEnd = 2 + (sealed[1] ?? 0);
      const nonceStart = idEnd + saltBytes;
      const bodyStart = nonceStart + nonceBytes;
      if (sealed[0] !== valueVersion || sealed.length < bodyStart + tagBytes) return null;
      const master = masters.get(sealed.toString('latin1', 2, idEnd))?.key;
      if (master === undefined) return null;
      const key = valueKey(master, sealed.subarray(idEnd, nonceStart));
      const nonce = sealed.subarray(nonceStart, bodyStart);
      return decrypt(key, nonce, sealed.subarray(bodyStart), Buffer.from(aad, 'utf8'));
    },
  };
}
