import type { KeyObject } from 'node:crypto';
import { createHash, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';

/** Ed25519 keys of reports: PEM on disk, the public one as base64 of its SPKI in the header. */

/** Signed before the hash, so that no signature of ours can be taken for one of a report, or the other way round. */
const purpose = 'model-gateway evidence 1 signature';

const signed = (hash: string): Buffer => Buffer.from(`${purpose}\n${hash}`);

function ed25519(read: () => KeyObject): KeyObject | null {
  try {
    const key = read();
    return key.asymmetricKeyType === 'ed25519' ? key : null;
  } catch {
    return null;
  }
}

/** PKCS#8 PEM. Null for any other text or kind of key. */
export const readPrivateKey = (pem: string): KeyObject | null => ed25519(() => createPrivateKey(pem));

/** SPKI PEM. Null for any other text or kind of key. */
export const readPublicKey = (pem: string): KeyObject | null => ed25519(() => createPublicKey(pem));

/** As the header has it, of a private or a public key. */
export function publicKeyText(key: KeyObject): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
}

/** What people compare: SHA-256 of the SPKI, as `openssl pkey -pubout -outform DER | sha256sum` shows it. */
export const fingerprint = (publicKey: string): string =>
  createHash('sha256').update(Buffer.from(publicKey, 'base64')).digest('hex');

export const signerWith =
  (key: KeyObject) =>
  (hash: string): string =>
    sign(null, signed(hash), key).toString('base64');

/** False also for a key, or a spelling of the signature, that cannot be read. */
export function isSignedBy(publicKey: string, hash: string, signature: string): boolean {
  const der = Buffer.from(publicKey, 'base64');
  const key = ed25519(() => createPublicKey({ key: der, format: 'der', type: 'spki' }));
  const bytes = Buffer.from(signature, 'base64');
  // The last digit has bits that nobody reads: one signature has one spelling.
  return key !== null && bytes.toString('base64') === signature && verify(null, signed(hash), key, bytes);
}
