import type { RunningProxy } from './proxy.ts';
import { annotationsBelow, startProxy } from './proxy.ts';

/** The controller's ConfigMap: defaults for all that annotations say, and `http-snippet`. */
export type ControllerSettings = Readonly<Record<string, string>>;

/**
 * What ingress-nginx writes into a location: the annotation, and its value where there is none (its
 * internal/ingress/controller/config/config.go, NewDefault; rootfs/etc/nginx/template/nginx.tmpl).
 */
const directives: Readonly<Record<string, readonly [directive: string, byDefault: string, unit?: string]>> = {
  'proxy-body-size': ['client_max_body_size', '1m'],
  'proxy-connect-timeout': ['proxy_connect_timeout', '5', 's'],
  'proxy-send-timeout': ['proxy_send_timeout', '60', 's'],
  'proxy-read-timeout': ['proxy_read_timeout', '60', 's'],
  'proxy-buffering': ['proxy_buffering', 'off'],
  'proxy-request-buffering': ['proxy_request_buffering', 'on'],
  'proxy-http-version': ['proxy_http_version', '1.1'],
  'proxy-next-upstream': ['proxy_next_upstream', 'error timeout'],
  'proxy-next-upstream-timeout': ['proxy_next_upstream_timeout', '0'],
  'proxy-next-upstream-tries': ['proxy_next_upstream_tries', '3'],
};

/** nginx as ingress-nginx runs it for an Ingress with these annotations, in front of these pods. */
export async function startNginx(
  annotations: Readonly<Record<string, string>>,
  ports: readonly number[],
  settings: ControllerSettings = {},
): Promise<RunningProxy> {
  const location = locationOf(annotations, settings);
  return startProxy({
    variable: 'TEST_NGINX',
    configuration: (port, folder) => configuration(port, folder, location, ports, settings),
    // One process, so that killing it leaves none behind.
    args: (file, folder) => [
      '-p',
      folder,
      '-c',
      file,
      '-e',
      'stderr',
      '-g',
      'daemon off; master_process off;',
    ],
  });
}

function locationOf(annotations: Readonly<Record<string, string>>, settings: ControllerSettings): string[] {
  const own = annotationsBelow('nginx.ingress.kubernetes.io/', annotations);
  const unknown = [...own.keys()].filter((name) => directives[name] === undefined);
  if (unknown.length > 0) throw new Error(`No test knows what ingress-nginx makes of ${unknown.join(', ')}.`);
  return Object.entries(directives).map(
    ([name, [directive, byDefault, unit = '']]) =>
      `${directive} ${own.get(name) ?? settings[name] ?? byDefault}${unit};`,
  );
}

function configuration(
  port: number,
  folder: string,
  location: readonly string[],
  ports: readonly number[],
  settings: ControllerSettings,
): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  keepalive_timeout 75s;
  keepalive_requests 1000;
  client_header_timeout 60s;
  client_body_timeout 60s;
  client_body_buffer_size 8k;
  reset_timedout_connection on;
  ${settings['http-snippet'] ?? ''}
  map $http_x_request_id $req_id { default $http_x_request_id; '' $request_id; }
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream pods {
    ${ports.map((pod) => `server 127.0.0.1:${pod} max_fails=0;`).join('\n    ')}
    keepalive 320;
    keepalive_timeout 60s;
    keepalive_requests 10000;
  }
  server {
    listen 127.0.0.1:${port};
    location /v1/ {
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Request-ID $req_id;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_buffer_size 4k;
      proxy_buffers 4 4k;
      proxy_max_temp_file_size 1024m;
      proxy_redirect off;
      ${location.join('\n      ')}
      proxy_pass http://pods;
    }
  }
}
`;
}
