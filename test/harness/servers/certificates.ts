import type { KeyObject } from 'node:crypto';
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** Certificates made on the spot, so that no private key lies in the repository. RFC 5280, just enough of it. */
export interface IssuedCertificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface CertificateAuthority {
  /** PEM of the root. */
  readonly root: string;
  /** A certificate for DNS names and IPv4 addresses. `validDays` below 0: it has expired. */
  issue(names: readonly string[], validDays?: number): IssuedCertificate;
}

const dayMs = 86_400_000;
const ecdsaWithSha256 = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'));

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  if (body.length < 128) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  // The shortest form of a length is the only one that strict readers take.
  if (body.length < 256) return Buffer.concat([Buffer.from([tag, 0x81, body.length]), body]);
  return Buffer.concat([Buffer.from([tag, 0x82, body.length >> 8, body.length & 0xff]), body]);
}

const name = (text: string): Buffer =>
  der(0x30, der(0x31, der(0x30, Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from(text)))));

const utcTime = (ms: number): Buffer =>
  der(0x17, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));

const extension = (oid: string, value: Buffer): Buffer =>
  der(0x30, Buffer.from(oid, 'hex'), der(0x04, value));

const isAuthority = extension('0603551d13', der(0x30, Buffer.from('0101ff', 'hex')));

function alternativeNames(names: readonly string[]): Buffer {
  const entries = names.map((one) =>
    isIPv4(one) ? der(0x87, Buffer.from(one.split('.').map(Number))) : der(0x82, Buffer.from(one)),
  );
  return extension('0603551d11', der(0x30, ...entries));
}

function certificate(
  subject: { readonly name: string; readonly publicKey: KeyObject },
  issuer: { readonly name: string; readonly privateKey: KeyObject },
  validity: readonly [fromMs: number, toMs: number],
  extra: Buffer,
): string {
  const body = der(
    0x30,
    der(0xa0, Buffer.from('020102', 'hex')),
    der(0x02, Buffer.concat([Buffer.from([0x01]), randomBytes(8)])),
    ecdsaWithSha256,
    name(issuer.name),
    der(0x30, utcTime(validity[0]), utcTime(validity[1])),
    name(subject.name),
    subject.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, extra)),
  );
  const signature = sign('sha256', body, issuer.privateKey);
  const whole = der(0x30, body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  return `-----BEGIN CERTIFICATE-----\n${whole.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
}

export function certificateAuthority(): CertificateAuthority {
  const authority = { name: 'Test Root', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
  const root = certificate(authority, authority, [Date.now() - dayMs, Date.now() + dayMs], isAuthority);
  return {
    root,
    issue(names, validDays = 1) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const until = Date.now() + validDays * dayMs;
      const cert = certificate(
        { name: 'Test Server', publicKey },
        authority,
        [Math.min(Date.now(), until) - dayMs, until],
        alternativeNames(names),
      );
      return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
    },
  };
}
