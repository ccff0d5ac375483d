import type { RunningProxy } from './proxy.ts';
import { startProxy } from './proxy.ts';

/** The rules of an HTTPRoute, as far as the chart writes them. */
export interface RouteRule {
  readonly matches: readonly { readonly path: { readonly type: string; readonly value: string } }[];
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string };
  readonly backendRefs: readonly { readonly name: string; readonly port: number }[];
}

/** Envoy as a Gateway API controller runs it for these rules, in front of these pods. */
export async function startEnvoy(
  rules: readonly RouteRule[],
  ports: readonly number[],
): Promise<RunningProxy> {
  return startProxy({
    variable: 'TEST_ENVOY',
    configuration: (port) => JSON.stringify(configuration(port, rules, ports)),
    args: (file) => ['-c', file, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'warning'],
  });
}

const known = new Set(['matches', 'timeouts', 'backendRefs']);

/**
 * One route of Envoy, as Envoy Gateway writes it (its internal/gatewayapi/route.go, processRouteTimeout): without retries
 * the limit of the backend's answer is the limit of the route, and no limit is none.
 */
function routesOf(rule: RouteRule): unknown[] {
  const unknown = Object.keys(rule).filter((field) => !known.has(field));
  if (unknown.length > 0) throw new Error(`No test knows what Envoy makes of ${unknown.join(', ')}.`);
  const timeout = rule.timeouts?.backendRequest ?? rule.timeouts?.request ?? '0s';
  return rule.matches.map(({ path: { type, value } }) => ({
    match: type === 'Exact' ? { path: value } : { path_separated_prefix: value },
    route: { cluster: 'pods', timeout },
  }));
}

const isExact = (rule: RouteRule): boolean => rule.matches.some(({ path }) => path.type === 'Exact');

function configuration(port: number, rules: readonly RouteRule[], ports: readonly number[]): unknown {
  const at = (portValue: number) => ({ socket_address: { address: '127.0.0.1', port_value: portValue } });
  const type = (name: string) => `type.googleapis.com/envoy.extensions.filters.${name}`;
  // The Gateway API gives the exact path precedence; Envoy takes the first route that matches.
  const routes = [...rules.filter(isExact), ...rules.filter((rule) => !isExact(rule))].flatMap(routesOf);
  const manager = {
    '@type': type('network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: 'http',
    use_remote_address: true,
    normalize_path: true,
    http_filters: [
      { name: 'envoy.filters.http.router', typed_config: { '@type': type('http.router.v3.Router') } },
    ],
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
  };
  return {
    static_resources: {
      listeners: [
        {
          address: at(port),
          per_connection_buffer_limit_bytes: 32_768,
          filter_chains: [
            { filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] },
          ],
        },
      ],
      clusters: [
        {
          name: 'pods',
          per_connection_buffer_limit_bytes: 32_768,
          load_assignment: {
            cluster_name: 'pods',
            endpoints: [{ lb_endpoints: ports.map((pod) => ({ endpoint: { address: at(pod) } })) }],
          },
        },
      ],
    },
  };
}
