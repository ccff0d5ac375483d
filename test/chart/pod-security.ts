type Fields = Readonly<Record<string, unknown>>;

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>((inner, step) => (inner as Fields | undefined)?.[step], value);
}

const restrictedVolumes = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
]);

/**
 * What of a pod breaks the restricted Pod Security Standard (kubernetes.io/docs/concepts/security/pod-security-standards),
 * one line each.
 */
export function podSecurityProblems(pod: Fields): string[] {
  const problems: string[] = [];
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) if (pod[field] === true) problems.push(field);
  for (const volume of (pod['volumes'] ?? []) as Fields[]) {
    const kinds = Object.keys(volume).filter((key) => key !== 'name');
    if (!kinds.every((kind) => restrictedVolumes.has(kind)))
      problems.push(`volume ${String(volume['name'])}`);
  }
  const containers = [...((pod['initContainers'] ?? []) as Fields[]), ...(pod['containers'] as Fields[])];
  for (const container of containers) {
    const name = String(container['name']);
    const own = (field: string, ...more: string[]): unknown =>
      at(container, 'securityContext', field, ...more) ?? at(pod, 'securityContext', field, ...more);
    if (at(container, 'securityContext', 'allowPrivilegeEscalation') !== false)
      problems.push(`${name}: allowPrivilegeEscalation`);
    if (at(container, 'securityContext', 'privileged') === true) problems.push(`${name}: privileged`);
    if (!((at(container, 'securityContext', 'capabilities', 'drop') ?? []) as string[]).includes('ALL'))
      problems.push(`${name}: capabilities`);
    if (own('runAsNonRoot') !== true || own('runAsUser') === 0) problems.push(`${name}: runAsNonRoot`);
    if (own('seccompProfile', 'type') !== 'RuntimeDefault') problems.push(`${name}: seccompProfile`);
    for (const port of (container['ports'] ?? []) as Fields[])
      if (port['hostPort'] !== undefined) problems.push(`${name}: hostPort`);
  }
  return problems;
}
