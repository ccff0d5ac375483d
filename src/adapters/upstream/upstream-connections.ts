/** What a pool says of its sockets. */
export interface PoolStats {
  readonly connected: number;
  readonly running: number;
  readonly pending: number;
}

/** Sockets of one provider, to all its addresses. */
export interface UpstreamConnections {
  readonly active: number;
  readonly idle: number;
  /** Calls whose connection is still being made. */
  readonly waiting: number;
}

/** Sums the sockets of pools by provider. */
export function connectionsOf(
  pools: Iterable<readonly [provider: string, pool: { readonly stats: PoolStats }]>,
): ReadonlyMap<string, UpstreamConnections> {
  const byProvider = new Map<string, UpstreamConnections>();
  for (const [provider, { stats }] of pools) {
    const { active, idle, waiting } = byProvider.get(provider) ?? { active: 0, idle: 0, waiting: 0 };
    byProvider.set(provider, {
      active: active + stats.running,
      idle: idle + Math.max(0, stats.connected - stats.running),
      waiting: waiting + stats.pending,
    });
  }
  return byProvider;
}
