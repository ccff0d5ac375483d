import { getObjects, kubectl, must } from '../../cluster/cluster.ts';
import type { KubernetesObject } from '../../harness/cluster/kubernetes-object.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Release } from './release.ts';

interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly containerID: string;
  readonly state: {
    readonly terminated?: { readonly exitCode: number; readonly finishedAt: string; readonly reason: string };
  };
}

export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
  };
  readonly spec: Readonly<Record<string, unknown>> & { readonly terminationGracePeriodSeconds: number };
  readonly status: {
    readonly phase: string;
    readonly podIP: string;
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

const asPods = (objects: readonly KubernetesObject[]) => objects as unknown as Pod[];

/** Pods by a label selector, those that are leaving included. */
export async function podsBy(namespace: string, selector: string): Promise<Pod[]> {
  return asPods(await getObjects(namespace, 'pods', selector));
}

/** The gateway's pods of a release that are not leaving. */
export async function podsOf({ namespace, name }: Release): Promise<Pod[]> {
  const selector = `app.kubernetes.io/instance=${name},app.kubernetes.io/component=gateway`;
  const pods = await podsBy(namespace, selector);
  return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

/** The one pod of a release with one replica. */
export async function onlyPod(release: Release): Promise<Pod> {
  const [pod, ...others] = await podsOf(release);
  if (pod === undefined || others.length > 0) throw new Error(`${release.name} has not just one pod`);
  return pod;
}

/** Waits for a pod of the selector of which `isSo` holds. */
export function untilPod(
  namespace: string,
  selector: string,
  isSo: (pod: Pod) => boolean,
  limitMs = 120_000,
): Promise<Pod> {
  return eventually(async () => (await podsBy(namespace, selector)).find(isSo), limitMs);
}

export const isReady = (pod: Pod): boolean =>
  pod.status.containerStatuses?.every(({ ready }) => ready) ?? false;

/** Identity and restarts of pods: what an edit must not change. */
export const identities = (pods: readonly Pod[]): string[] =>
  pods.map(({ metadata, status }) => `${metadata.uid} ${status.containerStatuses?.[0]?.restartCount}`).sort();

/** Output of a command in a pod's container. */
export function execIn(namespace: string, pod: string, container: string, ...command: string[]) {
  return must(kubectl(['-n', namespace, 'exec', pod, '-c', container, '--', ...command]));
}

/** What is written to stdout and stderr, of all runs but the newest with `previous`. */
export function logOf(namespace: string, pod: string, ...more: string[]): Promise<string> {
  return must(kubectl(['-n', namespace, 'logs', pod, ...more]));
}

export interface Memory {
  /** Pages of the processes themselves. */
  readonly anonymousMiB: number;
  /** All that counts against the limit. */
  readonly usedMiB: number;
  readonly limitMiB: number;
}

/** A container's memory, read from its own cgroup (version 1 or 2). */
export async function memoryOf(namespace: string, pod: string, container: string): Promise<Memory> {
  const script =
    'cd /sys/fs/cgroup; if [ -e memory.current ]; then cat memory.current memory.max memory.stat; ' +
    'else cd memory; cat memory.usage_in_bytes memory.limit_in_bytes memory.stat; fi';
  const text = await execIn(namespace, pod, container, 'sh', '-c', script);
  const [used, limit] = text.split('\n');
  const anonymous = /^(?:total_rss|anon) (\d+)$/m.exec(text)?.[1];
  const toMiB = (bytes: string | undefined) => Math.round((Number(bytes) / 1024 / 1024) * 10) / 10;
  return { anonymousMiB: toMiB(anonymous), usedMiB: toMiB(used), limitMiB: toMiB(limit) };
}
