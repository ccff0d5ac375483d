import { readFileSync } from 'node:fs';
import type { SecureContext, SecureContextOptions } from 'node:tls';
import { createSecureContext } from 'node:tls';

/** PEM files; null: none of that kind. */
export interface CertificateFiles {
  readonly rootCertPath: string | null;
  readonly certPath: string | null;
  readonly keyPath: string | null;
  readonly keyPassphrase: string | null;
}

/** Told when renewed files cannot be used, with the code of the failure, and with null when they can be again. */
export type OnCertificates = (trouble: string | null) => void;

/** Files that cannot be used; the message is the code of the failure and names no path. */
export class CertificateFilesError extends Error {}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'not a certificate';

/** PEM texts and the passphrase, as `createSecureContext` takes them. Throws what the file system throws. */
function read({ rootCertPath, certPath, keyPath, keyPassphrase }: CertificateFiles): SecureContextOptions {
  const text = (path: string | null) => (path === null ? undefined : readFileSync(path, 'utf8'));
  return {
    ca: text(rootCertPath),
    cert: text(certPath),
    key: text(keyPath),
    passphrase: keyPassphrase ?? undefined,
  };
}

/**
 * What the files hold, read again at each call, so that renewed ones are used. Where they cannot be used
 * later on, the last good ones stay: a volume that is being swapped must end no connection, and what `tls.connect`
 * throws inside a driver would end the process. Throws CertificateFilesError at once.
 */
export function followCertificates(
  files: CertificateFiles,
  onChange: OnCertificates = () => {},
): () => SecureContext {
  let last: { readonly text: string; readonly context: SecureContext };
  const load = (known: string | null): void => {
    const options = read(files);
    const text = JSON.stringify(options);
    if (text !== known) last = { text, context: createSecureContext(options) };
  };
  try {
    load(null);
  } catch (error) {
    throw new CertificateFilesError(codeOf(error));
  }
  let told: string | null = null;
  const tell = (trouble: string | null): void => {
    if (trouble !== told) onChange(trouble);
    told = trouble;
  };
  return () => {
    try {
      load(last.text);
      tell(null);
    } catch (error) {
      tell(codeOf(error));
    }
    return last.context;
  };
}
