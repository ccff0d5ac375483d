import { mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { unpackDebianPackages } from '../stage/debian-packages.ts';
import { StageError } from '../stage/project.ts';

/** What a node and a build of images need beside the programs that are built; libraries that not every Debian has. */
const programs = [
  ...['containerd', 'runc', 'containernetworking-plugins', 'iptables', 'iproute2', 'openssl'],
  ...['buildah', 'golang-github-containers-common'],
  ...['libxtables12', 'libip4tc2', 'libip6tc2', 'libmnl0', 'libnftnl11', 'libnfnetlink0'],
  ...['libnetfilter-conntrack3', 'libseccomp2', 'libdevmapper1.02.1'],
  ...['libgpgme11', 'libassuan0', 'libgpg-error0'],
  ...['libssl3', 'libbpf1', 'libelf1', 'libbsd0', 'libmd0', 'libcap2'],
];

/** What the Dockerfile and a shell need of a base image: no package manager, no configuration. */
export const baseImage: readonly string[] = [
  ...['base-files', 'libc6', 'libgcc-s1', 'libstdc++6', 'dash', 'coreutils', 'findutils'],
  ...['libacl1', 'libattr1', 'libgmp10', 'libselinux1', 'libpcre2-8-0'],
];

const triplets: Readonly<Record<string, string>> = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' };
const programFolders = ['usr/sbin', 'usr/bin', 'sbin', 'bin'];
const tableCommands = ['iptables', 'iptables-save', 'iptables-restore'];

export interface NodePrograms {
  /** Below it lie the packages' files. */
  readonly folder: string;
  /** The root of the base image. */
  readonly base: string;
  /** Finds the programs and their libraries. */
  readonly env: NodeJS.ProcessEnv;
}

/** Debian's programs for a node, unpacked once per machine. Throws StageError. */
export async function findNodePrograms(runFolder: string): Promise<NodePrograms> {
  const triplet = triplets[process.arch];
  if (triplet === undefined) throw new StageError(`A node is not made for ${process.arch} here.`);
  const folder = await unpackDebianPackages('node', programs);
  const base = await unpackDebianPackages('node-base-image', baseImage);
  const links = linkTables(runFolder, folder);
  const paths = [links, ...programFolders.map((path) => join(folder, path)), process.env['PATH']];
  const env = {
    ...process.env,
    PATH: [...paths, '/usr/sbin', '/sbin'].join(delimiter),
    LD_LIBRARY_PATH: ['lib', 'usr/lib'].map((path) => join(folder, path, triplet)).join(delimiter),
    XTABLES_LIBDIR: join(folder, 'usr/lib', triplet, 'xtables'),
  };
  return { folder, base, env };
}

/** Debian gives iptables its name when it is installed; here it is the variant for nftables, as there. */
function linkTables(runFolder: string, folder: string): string {
  const links = join(runFolder, 'bin');
  mkdirSync(links);
  for (const name of tableCommands) {
    for (const command of [name, name.replace('ip', 'ip6')]) {
      symlinkSync(join(folder, 'usr/sbin/xtables-nft-multi'), join(links, command));
    }
  }
  return links;
}
