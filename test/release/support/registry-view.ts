import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';

interface Blob {
  readonly digest: string;
  readonly size: number;
}

export interface Manifest {
  readonly config: Blob;
  readonly layers: readonly Blob[];
}

interface Index {
  readonly manifests: readonly (Blob & {
    readonly platform: { readonly os: string; readonly architecture: string };
  })[];
}

const imageType = 'application/vnd.oci.image.manifest.v1+json';
const indexType = 'application/vnd.oci.image.index.v1+json';

/** A reference by digest, in its parts. */
function partsOf(reference: string): { host: string; repository: string; digest: string } {
  const [, host = '', repository = '', digest = ''] = /^([^/]+)\/(.+)@(sha256:\w+)$/.exec(reference) ?? [];
  return { host, repository, digest };
}

async function get(reference: string, kind: 'manifests' | 'blobs', digest: string): Promise<Response> {
  const { host, repository } = partsOf(reference);
  const response = await fetch(`http://${host}/v2/${repository}/${kind}/${digest}`, {
    headers: { accept: [imageType, indexType].join() },
  });
  if (!response.ok) throw new Error(`${reference}: ${kind} ${digest}: ${response.status}`);
  return response;
}

/** The images of an index, by their platforms, as references by digest. */
export async function imagesOf(reference: string): Promise<Record<string, string>> {
  const response = await get(reference, 'manifests', partsOf(reference).digest);
  expect(response.headers.get('content-type')).toBe(indexType);
  const { manifests } = (await response.json()) as Index;
  const [name] = reference.split('@');
  return Object.fromEntries(
    manifests.map(({ digest, platform }) => [`${platform.os}/${platform.architecture}`, `${name}@${digest}`]),
  );
}

/** The manifest that a registry has under this digest. */
export async function manifestOf(reference: string): Promise<Manifest> {
  return (await (await get(reference, 'manifests', partsOf(reference).digest)).json()) as Manifest;
}

/** The configuration of an image. */
export async function configOf(reference: string): Promise<Record<string, unknown>> {
  const { config } = await manifestOf(reference);
  return (await (await get(reference, 'blobs', config.digest)).json()) as Record<string, unknown>;
}

/** What the Dockerfile adds to its base: an archive of files. */
export class LastLayer {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  static async of(reference: string, folder: string): Promise<LastLayer> {
    const { layers } = await manifestOf(reference);
    const digest = layers.at(-1)?.digest ?? '';
    const path = join(folder, 'last-layer.tar.gz');
    writeFileSync(path, Buffer.from(await (await get(reference, 'blobs', digest)).arrayBuffer()));
    return new LastLayer(path);
  }

  names(): string[] {
    return this.#tar('--list').toString().trim().split('\n');
  }

  text(name: string): string {
    return this.#tar('--extract', '--to-stdout', name).toString();
  }

  /** Mode, owner and name of each entry. */
  entries(): string[] {
    return this.#tar('--list', '--verbose', '--numeric-owner').toString().trim().split('\n');
  }

  /** Into a new folder. */
  unpack(folder: string): void {
    mkdirSync(folder);
    this.#tar('--extract', '--directory', folder);
  }

  #tar(...args: string[]): Buffer {
    return execFileSync('tar', ['--gzip', '--file', this.#path, ...args], { maxBuffer: 2 ** 28 });
  }
}
