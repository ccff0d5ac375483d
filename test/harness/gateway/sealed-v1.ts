import { createCipheriv, randomBytes } from 'node:crypto';

/** What a record of the first seal is bound to. */
export interface FirstBinding {
  readonly recordId: string;
  readonly userId: string;
  readonly provider: string;
}

/**
 * A secret sealed as the releases before version 2 of the seal did: bound to record, user and provider only.
 * Written apart from the sealer, so that rows of old databases stay what they were.
 */
export function sealedByFirstVersion(
  key: Buffer,
  plaintext: string,
  { recordId, userId, provider }: FirstBinding,
): { nonce: Buffer; ciphertext: Buffer } {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 });
  cipher.setAAD(Buffer.from(JSON.stringify(['gw-provider-key-1', recordId, userId, provider])));
  return {
    nonce,
    ciphertext: Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()]),
  };
}
