import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { baseImage } from '../stage/base-image.ts';
import { runQuietly } from '../stage/children.ts';
import { root, StageError } from '../stage/project.ts';
import { imageName } from '../stage/version.ts';
import { makeBaseRoot, npmCacheVolume } from './base-image.ts';
import type { BaseParts } from './foreign-base.ts';
import { ownArchitecture } from './foreign-base.ts';
import type { NodePrograms } from './node-programs.ts';
import { toolPath } from './tools.ts';

/** As buildah spells the name in the Dockerfile. No registry is asked for it: the stand-in is there before. */
const baseName = `docker.io/library/${baseImage()}`;
const baseFile = `FROM scratch
COPY . /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
CMD ["node"]
`;
export const pauseName = 'docker.io/library/gw-pause:1';
const pauseFile = `FROM scratch
COPY pause /pause
ENTRYPOINT ["/pause"]
`;
/** The chart's default. */
export const gatewayName = `docker.io/library/${imageName}`;

/** For RUN, buildah starts itself once more without LD_LIBRARY_PATH; the linker's cache is what it then still has. */
const withLibraries = `
ldconfig -X -f /dev/null -C "$1" $(echo "$LD_LIBRARY_PATH" | tr : ' ')
mount --bind "$1" /etc/ld.so.cache
shift
exec "$@"
`;
/** Lines of a failed build that are worth showing. */
const OUTPUT_TAIL = 15;

/** Builds images with buildah in `folder`, without a daemon and without a registry. */
export class ImageBuilder {
  readonly #folder: string;
  readonly #programs: NodePrograms;
  readonly #storage: readonly string[];
  readonly #policy: readonly string[];

  constructor(folder: string, programs: NodePrograms) {
    this.#folder = join(folder, 'images');
    this.#programs = programs;
    mkdirSync(this.#folder);
    const place = (name: string) => join(this.#folder, name);
    const driver = hasOverlay(this.#folder) ? 'overlay' : 'vfs';
    this.#storage = ['--root', place('storage'), '--runroot', place('run'), '--storage-driver', driver];
    this.#policy = ['--signature-policy', join(programs.folder, 'etc/containers/policy.json')];
  }

  /** The archive of the image in which nothing but a pod's namespaces live. Throws StageError. */
  async buildPause(): Promise<string> {
    const context = join(this.#folder, 'pause');
    mkdirSync(context);
    copyFileSync(toolPath('pause'), join(context, 'pause'));
    await this.#build(pauseName, this.#write(pauseFile), context);
    return this.#export(pauseName, 'pause.tar');
  }

  /** The archive of the project's Dockerfile, on a stand-in for its base image around this Node. Throws StageError. */
  async buildGateway(): Promise<string> {
    await this.#buildBase();
    await this.#build(gatewayName, join(root, 'Dockerfile'), root, npmCacheVolume());
    return this.#export(gatewayName, 'gateway.tar');
  }

  /** The stand-in for the base image. Throws StageError. */
  async #buildBase(): Promise<void> {
    const context = this.#baseOf(this.#ownBase());
    await this.#build(baseName, this.#write(baseFile), context);
  }

  /** The stand-in as an index: the base for this processor, and for the other one. Throws StageError. */
  async buildBases(foreign: BaseParts): Promise<void> {
    for (const parts of [this.#ownBase(), foreign]) {
      const target = ['--platform', `linux/${parts.architecture}`, '--manifest', baseName];
      await this.#buildTo(target, this.#write(baseFile), this.#baseOf(parts));
    }
  }

  /** The project's Dockerfile for these platforms, as an index in their order, once the bases are there. Throws StageError. */
  async buildIndex(name: string, platforms: readonly string[], more: readonly string[] = []): Promise<void> {
    const file = this.#write(platformsNamed(readFileSync(join(root, 'Dockerfile'), 'utf8')));
    for (const platform of platforms) {
      const target = ['--platform', platform, '--manifest', name];
      const builder = ['--build-arg', `BUILDPLATFORM=linux/${ownArchitecture}`];
      await this.#buildTo(target, file, root, [...npmCacheVolume(), ...builder, ...more]);
    }
  }

  /**
   * Pushes an image that was built to a registry without TLS, in OCI's format, which holds nothing of the builder; resolves
   * with its digest. Throws StageError.
   */
  push(name: string, reference: string): Promise<string> {
    return this.#pushBy(['push'], name, reference);
  }

  /** The same for an index and its images. */
  pushIndex(name: string, reference: string): Promise<string> {
    return this.#pushBy(['manifest', 'push', '--all'], name, reference);
  }

  async #pushBy(command: readonly string[], name: string, reference: string): Promise<string> {
    const file = join(this.#folder, 'digest');
    const insecurely = ['--format', 'oci', '--tls-verify=false', '--digestfile', file];
    await this.#buildah([...command, ...this.#policy, ...insecurely, name, `docker://${reference}`]);
    return readFileSync(file, 'utf8').trim();
  }

  #ownBase(): BaseParts {
    const node = realpathSync(process.execPath);
    return { architecture: ownArchitecture, debian: this.#programs.base, node };
  }

  /** A folder with the root of a base. */
  #baseOf(parts: BaseParts): string {
    const folder = join(this.#folder, `base-${parts.architecture}`);
    makeBaseRoot(folder, parts);
    return folder;
  }

  #write(containerfile: string): string {
    const path = join(this.#folder, 'Containerfile');
    writeFileSync(path, containerfile);
    return path;
  }

  #build(name: string, containerfile: string, context: string, more: readonly string[] = []): Promise<void> {
    return this.#buildTo(['--tag', name], containerfile, context, more);
  }

  /** In Docker's format, which alone keeps HEALTHCHECK. */
  #buildTo(
    target: readonly string[],
    containerfile: string,
    context: string,
    more: readonly string[] = [],
  ): Promise<void> {
    const kind = ['--isolation', 'chroot', '--pull-never', '--format', 'docker', ...this.#policy];
    return this.#buildah(['bud', ...kind, ...more, ...target, '--file', containerfile, context]);
  }

  async #export(name: string, file: string): Promise<string> {
    const archive = join(this.#folder, file);
    await this.#buildah(['push', ...this.#policy, name, `docker-archive:${archive}:${name}`]);
    return archive;
  }

  /** In namespaces of its own, so that its mounts and processes end with it. */
  async #buildah(args: readonly string[]): Promise<void> {
    const cache = join(this.#folder, 'ld.so.cache');
    const unshare = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const command = ['sh', '-c', withLibraries, 'sh', cache, 'buildah', ...this.#storage, ...args];
    const { code, output } = await runQuietly('unshare', [...unshare, ...command], {
      cwd: root,
      env: { ...this.#programs.env, TMPDIR: this.#folder },
    });
    if (code === 0) return;
    const tail = output.trim().split('\n').slice(-OUTPUT_TAIL).join('\n');
    throw new StageError(`buildah ${args[0]} failed:\n${tail}`);
  }
}

/**
 * The Dockerfile as BuildKit understands it: the buildah of Debian 12 takes the platform of one stage for those after it,
 * and its own for the one that is asked for.
 */
function platformsNamed(dockerfile: string): string {
  return dockerfile.replaceAll(/^FROM (?=\$)/gm, 'FROM --platform=$TARGETPLATFORM ');
}

/** Whether an overlay can be mounted over this folder; it cannot over another overlay. */
export function hasOverlay(folder: string): boolean {
  const place = (name: string) => join(folder, `try-${name}`);
  const [lower, upper, work, merged] = [place('lower'), place('upper'), place('work'), place('merged')];
  const paths = [lower, upper, work, merged];
  for (const path of paths) mkdirSync(path);
  const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
  const mount = ['mount', '-t', 'overlay', 'overlay', '-o', options, merged];
  const { status } = spawnSync('unshare', ['--mount', ...mount], { stdio: 'ignore' });
  for (const path of paths) rmSync(path, { recursive: true });
  return status === 0;
}
