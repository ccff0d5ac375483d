import { hash } from 'node:crypto';
import type { CoreV1Api, V1ConfigMap } from '@kubernetes/client-node';

/** Longest note the API server takes. */
const maxMessageLength = 1024;

/**
 * Tells operators, where they look first (`kubectl describe configmap`), why a new document was refused.
 * One Event per distinct fault: its name holds the message's hash, so all replicas write the same one.
 * Never rejects: an Event is a courtesy.
 */
export async function reportFault(
  core: CoreV1Api,
  configMap: V1ConfigMap,
  message: string,
  nowMs: number,
): Promise<void> {
  const { name = '', namespace = '', uid, resourceVersion } = configMap.metadata ?? {};
  const now = new Date(nowMs);
  const digest = hash('sha256', `${resourceVersion} ${message}`, 'hex').slice(0, 16);
  const involvedObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name,
    namespace,
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  try {
    await core.createNamespacedEvent({
      namespace,
      body: {
        metadata: { name: `${name}.${digest}`, namespace },
        involvedObject,
        type: 'Warning',
        reason: 'TablesRefused',
        message: message.slice(0, maxMessageLength),
        source: { component: 'model-gateway' },
        firstTimestamp: now,
        lastTimestamp: now,
        count: 1,
      },
    });
  } catch {
    // 409: another replica said it already. Anything else: the log line and the metric still say it.
  }
}
