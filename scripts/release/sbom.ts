import { readFileSync } from 'node:fs';
import { inProject } from '../../test/harness/stage/project.ts';
import type { ReleaseFacts } from './facts.ts';

interface LockedPackage {
  /** Where it is not that of its folder. */
  readonly name?: string;
  readonly version: string;
  readonly license?: string;
  /** `sha512-` and base64. */
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
}

interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

const unknown = 'NOASSERTION';

/**
 * What the image holds of npm's packages, as SPDX 2.3 in JSON: what the lock file has neither for development only nor as
 * optional, which is what the Dockerfile installs. Two of one commit are equal. What the base image holds, its publisher
 * says. (`npm sbom --omit dev` leaves out what a development tool needs too: with npm 11 zod, undici and thirty more.)
 */
export function softwareBill({ version, revision, committedAt }: ReleaseFacts): string {
  const { packages: locked } = JSON.parse(readFileSync(inProject('package-lock.json'), 'utf8')) as Lock;
  const packages = Object.entries(locked)
    .filter(([, { dev, optional }]) => !(dev || optional))
    .map(([path, entry]) => spdxPackage(path, entry));
  const document = {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `model-gateway-${version}`,
    documentNamespace: `https://spdx.org/spdxdocs/model-gateway-${version}-${revision}`,
    creationInfo: {
      created: new Date(committedAt * 1000).toISOString().replace('.000', ''),
      creators: ['Tool: model-gateway-release'],
    },
    packages,
    relationships: packages.map(({ SPDXID }, index) => ({
      spdxElementId: index === 0 ? 'SPDXRef-DOCUMENT' : idOf(''),
      relatedSpdxElement: SPDXID,
      relationshipType: index === 0 ? 'DESCRIBES' : 'CONTAINS',
    })),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** A package at its path in the lock file; the project itself is at none. */
function spdxPackage(path: string, { name, version, license, integrity }: LockedPackage) {
  const called = name ?? path.replace(/^.*node_modules\//, '');
  const [, sha512] = /^sha512-(.+)$/.exec(integrity ?? '') ?? [];
  const checksum = (base64: string) => Buffer.from(base64, 'base64').toString('hex');
  const locator = `pkg:npm/${called.replace('@', '%40')}@${version}`;
  return {
    name: called,
    SPDXID: idOf(path),
    versionInfo: version,
    downloadLocation: unknown,
    filesAnalyzed: false,
    licenseConcluded: unknown,
    licenseDeclared: license ?? unknown,
    copyrightText: unknown,
    externalRefs: [
      { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: locator },
    ],
    ...(sha512 && { checksums: [{ algorithm: 'SHA512', checksumValue: checksum(sha512) }] }),
  };
}

/** Letters, digits, dots and hyphens are all that an id may hold; paths are unique, names are not. */
function idOf(path: string): string {
  return `SPDXRef-Package-${path === '' ? 'model-gateway' : path.replace(/[^\w.]+/g, '-').replaceAll('_', '.')}`;
}
