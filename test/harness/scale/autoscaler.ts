/**
 * How the HorizontalPodAutoscaler of Kubernetes reacts to a step of load, by its algorithm
 * (https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#algorithm-details): CPU as the only metric,
 * scaling up only. Pure; times are seconds since the step.
 */

/** A policy of `behavior.scaleUp`. */
export interface ScalingPolicy {
  readonly type: 'Percent' | 'Pods';
  readonly value: number;
  readonly periodSeconds: number;
}

export interface ScaledWorkload {
  readonly minReplicas: number;
  readonly maxReplicas: number;
  /** Percent of the request. */
  readonly cpuUtilization: number;
  readonly requestCores: number;
  /** What one pod can use at most. */
  readonly podCores: number;
  readonly policies: readonly ScalingPolicy[];
}

export interface Surroundings {
  /** What all pods would use together after the step. */
  readonly cores: number;
  /** And before it. */
  readonly coresBefore: number;
  /** From the decision until a new pod is served requests. */
  readonly readySeconds: number;
  /** How old the usage is that the autoscaler sees. */
  readonly lagSeconds: number;
}

/** After a decision of the autoscaler. */
export interface Moment {
  readonly at: number;
  readonly replicas: number;
  readonly ready: number;
  /** Of a ready pod, in cores. */
  readonly usage: number;
}

/** `--horizontal-pod-autoscaler-sync-period`. */
const syncSeconds = 15;
/** `--horizontal-pod-autoscaler-tolerance`. */
const tolerance = 0.1;
const simulatedSeconds = 600;

/** When each pod became, or becomes, ready. */
type Pods = readonly number[];

function usageAt(pods: Pods, at: number, workload: ScaledWorkload, surroundings: Surroundings): number {
  const ready = pods.filter((since) => since <= at).length;
  const cores = at < 0 ? surroundings.coresBefore : surroundings.cores;
  return Math.min(workload.podCores, cores / ready);
}

/** A pod that had no usage when it was last looked at counts as idle, so that it is not scaled up twice for the same load. */
function wanted(pods: Pods, at: number, workload: ScaledWorkload, surroundings: Surroundings): number {
  const seenAt = at - surroundings.lagSeconds;
  const seen = pods.filter((since) => since <= seenAt).length;
  const target = (workload.cpuUtilization / 100) * workload.requestCores;
  const ratio = (seen * usageAt(pods, seenAt, workload, surroundings)) / (pods.length * target);
  return ratio <= 1 + tolerance ? pods.length : Math.ceil(pods.length * ratio);
}

/** The most that the policies allow now (`selectPolicy: Max`). `replicasAt`: how many there were at a time. */
function allowed(policies: readonly ScalingPolicy[], replicasAt: (at: number) => number, at: number): number {
  const limits = policies.map(({ type, value, periodSeconds }) => {
    const before = replicasAt(at - periodSeconds);
    return type === 'Pods' ? before + value : Math.ceil(before * (1 + value / 100));
  });
  return Math.max(...limits);
}

/** What becomes of the pods that the load before the step needed. */
export function reactToStep(workload: ScaledWorkload, surroundings: Surroundings): readonly Moment[] {
  const target = (workload.cpuUtilization / 100) * workload.requestCores;
  const needed = Math.ceil(Math.fround(surroundings.coresBefore / target));
  const start = Math.max(workload.minReplicas, needed);
  const pods: number[] = Array.from({ length: start }, () => Number.NEGATIVE_INFINITY);
  const moments: Moment[] = [
    { at: 0, replicas: start, ready: start, usage: usageAt(pods, 0, workload, surroundings) },
  ];
  const replicasAt = (at: number) => moments.findLast((moment) => moment.at <= at)?.replicas ?? start;
  for (let at = syncSeconds; at <= simulatedSeconds; at += syncSeconds) {
    const most = Math.min(workload.maxReplicas, allowed(workload.policies, replicasAt, at));
    const replicas = Math.max(pods.length, Math.min(most, wanted(pods, at, workload, surroundings)));
    while (pods.length < replicas) pods.push(at + surroundings.readySeconds);
    const ready = pods.filter((since) => since <= at).length;
    moments.push({ at, replicas, ready, usage: usageAt(pods, at, workload, surroundings) });
  }
  return moments;
}

/** When pods stop to be saturated, and when they are as many as the load needs; null where that never comes. */
export function settledAt(
  moments: readonly Moment[],
  workload: ScaledWorkload,
  { readySeconds }: Surroundings,
): { readonly carried: number | null; readonly replicas: number; readonly final: number } {
  const carried = moments.find(({ usage }) => usage < workload.podCores)?.at ?? null;
  const replicas = moments.at(-1)?.replicas ?? 0;
  const decided = moments.find((moment) => moment.replicas === replicas)?.at ?? 0;
  return { carried, replicas, final: decided === 0 ? 0 : decided + readySeconds };
}
