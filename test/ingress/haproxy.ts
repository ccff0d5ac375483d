import type { RunningProxy } from './proxy.ts';
import { annotationsBelow, startProxy } from './proxy.ts';

/** A controller that runs HAProxy: what its annotations begin with, and what it makes of each in the backend. */
interface Controller {
  readonly prefix: string;
  /** Lines of the section `defaults`, as the controller writes them when its ConfigMap says nothing. */
  readonly defaults: readonly string[];
  readonly backend: Readonly<Record<string, (value: string) => string>>;
}

const timeouts = [
  'timeout http-request 5s',
  'timeout connect 5s',
  'timeout client 50s',
  'timeout queue 5s',
  'timeout server 50s',
  'timeout tunnel 1h',
  'timeout http-keep-alive 1m',
];

/** From fs/usr/local/etc/haproxy/haproxy.cfg and pkg/converters/ingress/defaults.go of the two controllers. */
export const controllers = {
  'HAProxy Technologies': {
    prefix: 'haproxy.org/',
    defaults: timeouts,
    backend: {
      'timeout-server': (value) => `timeout server ${value}`,
      'backend-config-snippet': (value) => value,
    },
  },
  community: {
    prefix: 'haproxy-ingress.github.io/',
    defaults: ['option redispatch', 'option http-keep-alive', ...timeouts, 'timeout server-fin 50s'],
    backend: {
      'timeout-server': (value) => `timeout server ${value}`,
      'config-backend': (value) => value,
    },
  },
} as const satisfies Readonly<Record<string, Controller>>;

export type ControllerName = keyof typeof controllers;

/**
 * HAProxy as the controller runs it for an Ingress with these annotations, in front of these pods. `moreDefaults` is what
 * an operator adds to the section `defaults` (ConfigMap key `config-defaults`, or a Defaults object).
 */
export async function startHaproxy(
  name: ControllerName,
  annotations: Readonly<Record<string, string>>,
  ports: readonly number[],
  moreDefaults: readonly string[] = [],
): Promise<RunningProxy> {
  const controller: Controller = controllers[name];
  const defaults = [...controller.defaults, ...moreDefaults];
  const backend = backendOf(controller, annotations);
  return startProxy({
    variable: 'TEST_HAPROXY',
    configuration: (port) => configuration(port, defaults, backend, ports),
    args: (file) => ['-db', '-f', file],
  });
}

function backendOf({ prefix, backend }: Controller, annotations: Readonly<Record<string, string>>): string[] {
  return [...annotationsBelow(prefix, annotations)].map(([name, value]) => {
    const line = backend[name];
    if (line === undefined) throw new Error(`No test knows what ${prefix}${name} does.`);
    return line(value);
  });
}

function configuration(
  port: number,
  defaults: readonly string[],
  backend: readonly string[],
  ports: readonly number[],
): string {
  return `
global
  maxconn 1000
defaults
  mode http
  ${defaults.join('\n  ')}
frontend http
  bind 127.0.0.1:${port}
  option forwardfor
  use_backend pods if { path /v1 } or { path_beg /v1/ }
backend pods
  balance roundrobin
  ${backend.join('\n  ')}
  ${ports.map((pod) => `server pod${pod} 127.0.0.1:${pod}`).join('\n  ')}
`;
}
