import { hash } from 'node:crypto';

/**
 * Service keys: `gw_`, 32 random bytes as 43 base62 digits, and a 6-digit CRC-32 of both, so that secret
 * scanners (and this gateway, before it asks the database) can tell a key from a look-alike.
 */
const prefix = 'gw_';
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const base = 62;
const keyBytes = 32;
const bodyDigits = 43; // 62^43 > 2^256
const checksumDigits = 6; // 62^6 > 2^32
const currentShape = /^gw_[0-9A-Za-z]{49}$/;
/** Keys from before the rename exist only as hashes; this is the widest shape they can have had. */
const legacyToken = /^[A-Za-z0-9_-]{16,256}$/;

const crcTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let remainder = index;
  for (let bit = 0; bit < 8; bit += 1)
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1;
  return remainder >>> 0;
});

/** CRC-32 (ISO 3309) of ASCII text; `node:zlib` has one, but core does no I/O and imports no such module. */
function crc32(text: string, length: number): number {
  let crc = 0xffffffff;
  for (let index = 0; index < length; index += 1) {
    crc = (crcTable[(crc ^ text.charCodeAt(index)) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

function base62(value: bigint, digits: number): string {
  let text = '';
  for (let rest = value; text.length < digits; rest /= BigInt(base))
    text = alphabet.charAt(Number(rest % BigInt(base))) + text;
  return text;
}

function checksumOf(text: string, length: number): string {
  let rest = crc32(text, length);
  let digits = '';
  for (; digits.length < checksumDigits; rest = Math.floor(rest / base)) {
    digits = alphabet.charAt(rest % base) + digits;
  }
  return digits;
}

/** A new service key from 32 random bytes. Shown once; only its hash is kept. */
export function newServiceKey(randomBytes32: Buffer): string {
  if (randomBytes32.length !== keyBytes) throw new RangeError('a service key is made of 32 random bytes');
  const body = prefix + base62(BigInt(`0x${randomBytes32.toString('hex')}`), bodyDigits);
  return body + checksumOf(body, body.length);
}

/** Whether a service key is of today's form; nothing is said of a text that is none. */
export function isOfTodaysForm(key: string): boolean {
  return key.startsWith(prefix);
}

/**
 * Whether a bearer token can be a service key at all, so that garbage costs no query. `legacyName` is the
 * service's former name while its surface is accepted (SPEC 5.4), else null.
 */
export function hasServiceKeyShape(text: string, legacyName: string | null): 'current' | 'legacy' | null {
  if (currentShape.test(text)) {
    const bodyLength = prefix.length + bodyDigits;
    if (text.endsWith(checksumOf(text, bodyLength))) return 'current';
  }
  if (legacyName === null || !text.startsWith(`${legacyName}_`)) return null;
  return legacyToken.test(text.slice(legacyName.length + 1)) ? 'legacy' : null;
}

/** SHA-256 in hex. A fast hash is enough for 256 random bits; the database and every cache know only this. */
export function hashServiceKey(text: string): string {
  return hash('sha256', text, 'hex');
}
