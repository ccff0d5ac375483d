/**
 * What the committed renderings of the chart (test/chart/rendered) hold. They are compared with the templates by
 * `npm run test:cluster`, which has Helm; generated.test.ts sees when they are old.
 */
import { describe, expect, test } from 'vitest';
import { fileVariants } from '../../src/environment.ts';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';
import { listFiles, readObjects } from './chart-files.ts';
import { podSecurityProblems } from './pod-security.ts';

type Fields = Readonly<Record<string, unknown>>;

const cases = listFiles('test/chart/rendered', /\.yaml$/).map((path) => ({
  name: path.replace(/^.*\/|\.yaml$/g, ''),
  objects: readObjects(path),
}));

function objectsOf(name: string): KubernetesObject[] {
  const found = cases.find((entry) => entry.name === name);
  if (found === undefined) throw new Error(`no rendering ${name}`);
  return found.objects;
}

function find(name: string, kind: string, ending = ''): KubernetesObject | undefined {
  return objectsOf(name).find((object) => object.kind === kind && object.metadata.name.endsWith(ending));
}

function get(value: unknown, ...path: (string | number)[]): unknown {
  return path.reduce<unknown>((inner, step) => (inner as Fields | undefined)?.[step], value);
}

function podOf(object: KubernetesObject): Fields | undefined {
  return (object.kind === 'Pod' ? object.spec : get(object, 'spec', 'template', 'spec')) as
    | Fields
    | undefined;
}

function optional<Value>(value: Value | undefined): Value[] {
  return value === undefined ? [] : [value];
}

/** The container of the gateway: in a sidecar's pod it is among those that start first. */
function gatewayIn(pod: Fields): Fields {
  const containers = [...((pod['initContainers'] ?? []) as Fields[]), ...(pod['containers'] as Fields[])];
  return containers.find((container) => container['name'] === 'model-gateway') as Fields;
}

const deploymentPod = (objects: readonly KubernetesObject[]): Fields =>
  podOf(objects.find((object) => object.kind === 'Deployment') as KubernetesObject) as Fields;

const gatewayOf = (name: string): Fields => gatewayIn(deploymentPod(objectsOf(name)));

const env = (name: string): Record<string, unknown> =>
  Object.fromEntries((gatewayOf(name)['env'] as Fields[]).map((entry) => [entry['name'], entry['value']]));

describe.each(cases)('$name', ({ objects }) => {
  test('has pods that fit the restricted standard, without a token and with a read-only root', () => {
    const pods = objects.flatMap((object): Fields[] => optional(podOf(object)));
    expect(pods.length).toBeGreaterThan(0);
    for (const pod of pods) {
      expect(podSecurityProblems(pod)).toEqual([]);
      for (const container of pod['containers'] as Fields[]) {
        if (!String(container['image']).includes('model-gateway')) continue;
        expect(get(container, 'securityContext', 'readOnlyRootFilesystem')).toBe(true);
        expect(get(container, 'resources', 'requests', 'memory')).toBeDefined();
        expect(get(container, 'resources', 'limits', 'memory')).toBeDefined();
      }
    }
  });

  test('names every environment variable once, and none of them holds a secret', () => {
    for (const pod of objects.flatMap((object): Fields[] => optional(podOf(object)))) {
      for (const container of pod['containers'] as Fields[]) {
        const names = ((container['env'] ?? []) as Fields[]).map((entry) => String(entry['name']));
        expect(new Set(names).size).toBe(names.length);
        const secrets = fileVariants.filter((secret) => names.includes(secret));
        // The address of a proxy is one only with its credentials, which the schema keeps out of values.
        expect(secrets.filter((secret) => !secret.endsWith('_PROXY'))).toEqual([]);
        for (const { name, value } of (container['env'] ?? []) as Fields[])
          if (String(name).endsWith('_PROXY')) expect(value).not.toContain('@');
      }
    }
    expect(objects.map((object) => object.kind)).not.toContain('Secret');
  });

  test('leaves time for preStop, the drain delay, the longest request and the flush', () => {
    const pod = deploymentPod(objects);
    const container = gatewayIn(pod);
    const seconds = (name: string): number =>
      Number(((get(container, 'env') ?? []) as Fields[]).find((entry) => entry['name'] === name)?.['value']);
    const preStop = Number(get(container, 'lifecycle', 'preStop', 'sleep', 'seconds'));
    expect(Number(pod['terminationGracePeriodSeconds'])).toBeGreaterThanOrEqual(
      preStop + seconds('GW_DRAIN_DELAY_SECONDS') + seconds('GW_DRAIN_SECONDS') + 20,
    );
  });

  test('probes the admin port, which no Service but the headless one names', () => {
    const container = gatewayIn(deploymentPod(objects));
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'])
      expect(get(container, probe, 'httpGet', 'port')).toBe('admin');
    expect(get(container, 'livenessProbe', 'httpGet', 'path')).toBe('/healthz');
    for (const service of objects.filter((object) => object.kind === 'Service')) {
      const ports = (get(service, 'spec', 'ports') as Fields[]).map((port) => port['targetPort']);
      if (get(service, 'spec', 'clusterIP') === 'None') expect(ports).toEqual(['admin']);
      else expect(ports).toEqual(['http']);
    }
  });
});

describe('the tables', () => {
  test('are mounted as a directory', () => {
    const mounts = gatewayOf('defaults')['volumeMounts'] as Fields[];
    expect(mounts).toContainEqual({ name: 'tables', mountPath: '/etc/model-gateway/tables', readOnly: true });
    expect(env('defaults')).toMatchObject({ GW_TABLES_FILE: '/etc/model-gateway/tables/tables.yaml' });
  });

  test('come through the API only in watch mode, with the rights for one ConfigMap', () => {
    for (const { name, objects } of cases) {
      const isWatch = name === 'watch';
      expect(
        objects.some((object) => /Role/.test(object.kind)),
        name,
      ).toBe(isWatch);
      const pod = podOf(find(name, 'Deployment') as KubernetesObject);
      expect(pod?.['automountServiceAccountToken'], name).toBe(isWatch);
    }
    expect(env('watch')).toMatchObject({
      GW_TABLES_CONFIGMAP: 'model-gateway/model-gateway-tables/tables.yaml',
    });
    expect(find('watch', 'Role')?.rules).toEqual([
      {
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: ['model-gateway-tables'],
        verbs: ['get', 'list', 'watch'],
      },
      { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create'] },
    ]);
  });

  test('decide about the grace period', () => {
    const pod = podOf(find('watch', 'Deployment') as KubernetesObject);
    expect(pod?.['terminationGracePeriodSeconds']).toBe(5 + 5 + 600 + 20);
    expect(env('watch')['GW_DRAIN_SECONDS']).toBe('600');
  });
});

describe('scaling', () => {
  test('leaves the number of replicas to the autoscaler', () => {
    for (const { name } of cases) {
      const hasScaler = find(name, 'HorizontalPodAutoscaler') !== undefined;
      expect(get(find(name, 'Deployment'), 'spec', 'replicas') === undefined, name).toBe(hasScaler);
    }
  });

  test('looks at the cpu of the container and the streams in flight', () => {
    expect(get(find('ha', 'HorizontalPodAutoscaler'), 'spec', 'metrics')).toEqual([
      {
        type: 'ContainerResource',
        containerResource: {
          name: 'cpu',
          container: 'model-gateway',
          target: { type: 'Utilization', averageUtilization: 70 },
        },
      },
      {
        type: 'Pods',
        pods: {
          metric: { name: 'gw_inflight_streams' },
          target: { type: 'AverageValue', averageValue: '150' },
        },
      },
    ]);
  });

  test('keeps a budget when there can be more than one replica', () => {
    expect(find('sidecar', 'PodDisruptionBudget')).toBeUndefined();
    for (const name of ['defaults', 'ha', 'everything'])
      expect(find(name, 'PodDisruptionBudget')?.spec).toMatchObject({
        maxUnavailable: 1,
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
      });
    expect(find('watch', 'PodDisruptionBudget')?.spec).toMatchObject({ minAvailable: '50%' });
  });
});

describe('the network policy', () => {
  test('lets nothing out to cloud metadata or private networks but what is named', () => {
    const egress = get(find('defaults', 'NetworkPolicy'), 'spec', 'egress') as Fields[];
    const open = egress.filter((rule) => JSON.stringify(rule).includes('0.0.0.0/0'));
    expect(open).toHaveLength(1);
    const except = get(open[0], 'to', 0, 'ipBlock', 'except');
    for (const block of [
      '10.0.0.0/8',
      '172.16.0.0/12',
      '192.168.0.0/16',
      '169.254.0.0/16',
      '127.0.0.0/8',
      '100.64.0.0/10',
    ])
      expect(except).toContain(block);
    expect(get(open[0], 'to', 1, 'ipBlock', 'except')).toEqual(
      expect.arrayContaining(['fc00::/7', 'fe80::/10']),
    );
    expect(get(open[0], 'ports')).toEqual([{ port: 443, protocol: 'TCP' }]);
    for (const rule of egress) expect((rule['to'] as unknown[]).length).toBeGreaterThan(0);
  });

  test.each([
    ['defaults', '10', 'clients come from inside the cluster'],
    ['ha', '10', 'an ingress whose proxies are counted'],
    ['everything', '0', 'an ingress whose proxies are not counted: all clients have one address'],
  ])('limits registrations in %s to 60 a minute, per client to %s: %s', (name, perIp) => {
    expect(env(name)).toMatchObject({
      GW_REGISTRATIONS_PER_MINUTE: '60',
      GW_REGISTRATIONS_PER_MINUTE_PER_IP: perIp,
    });
  });

  test('opens private model servers one by one, in the policy and in the process', () => {
    const egress = get(find('everything', 'NetworkPolicy', 'everything'), 'spec', 'egress');
    expect(egress).toContainEqual({
      to: [{ ipBlock: { cidr: '10.30.0.0/24' } }],
      ports: [
        { port: 8000, protocol: 'TCP' },
        { port: 11434, protocol: 'TCP' },
      ],
    });
    // Port by port, and without the pod network of helm test, which this case names.
    expect(env('everything')['GW_OUTBOUND_ALLOWED_CIDRS']).toBe(
      '10.30.0.0/24:8000,10.30.0.0/24:11434,[fd30::/64]:8000',
    );
    expect(JSON.stringify(find('everything', 'Deployment'))).not.toContain('10.244.0.0/16');
    expect(env('everything')['GW_OUTBOUND_POLICY']).toBe('public-only');
  });

  test('lets spans out to a public endpoint under TLS, on its port only', () => {
    const egress = get(find('everything', 'NetworkPolicy', 'everything'), 'spec', 'egress') as Fields[];
    const open = egress.filter((rule) => JSON.stringify(rule).includes('0.0.0.0/0'));
    expect(open.map((rule) => rule['ports'])).toEqual([
      [{ port: 4318, protocol: 'TCP' }],
      [{ port: 443, protocol: 'TCP' }],
    ]);
  });

  test('shows metrics to the monitoring and to helm test only', () => {
    const ingress = get(find('defaults', 'NetworkPolicy'), 'spec', 'ingress') as Fields[];
    const admin = ingress.filter((rule) => JSON.stringify(rule['ports']).includes('admin'));
    expect(admin).toHaveLength(1);
    expect((admin[0] as Fields)['from']).toHaveLength(2);
  });
});

describe('networks of companies', () => {
  const volumesOf = (object: KubernetesObject | undefined) =>
    podOf(object as KubernetesObject)?.['volumes'] as Fields[];
  const egressOf = (name: string, ending = '') =>
    get(find(name, 'NetworkPolicy', ending), 'spec', 'egress') as Fields[];
  const portsTo = (name: string, peer: unknown, ending = '') =>
    egressOf(name, ending)
      .filter((rule) => JSON.stringify(rule['to']) === JSON.stringify(peer))
      .map((rule) => (rule['ports'] as Fields[]).map(({ port }) => port));

  test('have a proxy, whose address is a value or, with credentials, a file', () => {
    expect(env('watch')).toMatchObject({
      HTTPS_PROXY: 'http://proxy.example.com:8080',
      HTTP_PROXY: 'http://proxy.example.com:8080',
      NO_PROXY: '',
      GW_EGRESS_PROXY_REGION: 'global',
    });
    const file = '/run/secrets/model-gateway/egress-proxy';
    expect(env('everything')).toMatchObject({
      HTTPS_PROXY_FILE: file,
      HTTP_PROXY_FILE: file,
      NO_PROXY: '.example.com,10.0.0.0/8',
      GW_EGRESS_PROXY_REGION: 'india',
    });
    expect(JSON.stringify(volumesOf(find('everything', 'Deployment')))).toContain(
      '"name":"gateway-proxy","items":[{"key":"url","path":"egress-proxy"}]',
    );
    expect(Object.keys(env('defaults')).filter((name) => /PROXY(_|$)/.test(name))).toEqual([
      'GW_TRUSTED_PROXY_HOPS',
    ]);
  });

  test('are let out to the proxy, to sentinels and to every host of Postgres, and nowhere for nothing', () => {
    expect(portsTo('everything', [{ podSelector: { matchLabels: { app: 'proxy' } } }], 'everything')).toEqual(
      [[3128]],
    );
    expect(portsTo('everything', [{ podSelector: { matchLabels: { app: 'redis' } } }], 'everything')).toEqual(
      [[6379, 26379]],
    );
    const databases = egressOf('everything', 'everything').filter((rule) =>
      JSON.stringify(rule).includes('"port":5432,'),
    );
    expect(databases.map((rule) => (rule['ports'] as Fields[]).map(({ port }) => port))).toEqual([
      [5432, 5433],
    ]);
    expect(JSON.stringify(egressOf('everything', '-jobs'))).toContain('5433');
    expect(JSON.stringify(egressOf('watch'))).toContain('{"port":8080,"protocol":"TCP"}');
    for (const port of ['3128', '26379']) expect(JSON.stringify(egressOf('defaults'))).not.toContain(port);
  });

  test('have certificates of their own, for the gateway and for its Jobs', () => {
    expect(env('everything')['NODE_EXTRA_CA_CERTS']).toBe('/etc/model-gateway/ca/bundle.pem');
    expect(env('watch')['NODE_EXTRA_CA_CERTS']).toBe('/etc/model-gateway/ca/ca.crt');
    expect(volumesOf(find('watch', 'Deployment'))).toContainEqual({
      name: 'ca',
      secret: { secretName: 'company-ca', items: [{ key: 'ca.crt', path: 'ca.crt' }], defaultMode: 288 },
    });
    // Named, so that no pod starts without it.
    const items = [{ key: 'bundle.pem', path: 'bundle.pem' }];
    const ca = { name: 'ca', configMap: { name: 'company-ca', items } };
    const database = {
      name: 'database-tls',
      secret: { secretName: 'database-certificates', defaultMode: 288 },
    };
    const redis = { name: 'redis-tls', secret: { secretName: 'redis-certificates', defaultMode: 288 } };
    expect(volumesOf(find('everything', 'Deployment'))).toEqual(
      expect.arrayContaining([ca, database, redis]),
    );
    const mounted = (container: Fields | undefined) =>
      ((container?.['volumeMounts'] ?? []) as Fields[]).map(({ mountPath }) => mountPath);
    const places = ['/etc/model-gateway/ca', '/etc/model-gateway/database-tls'];
    expect(mounted(gatewayOf('everything'))).toEqual(
      expect.arrayContaining([...places, '/etc/model-gateway/redis-tls']),
    );
    const [collector] = deploymentPod(objectsOf('everything'))['initContainers'] as Fields[];
    expect(mounted(collector)).toContain('/etc/model-gateway/ca');
    for (const ending of ['migrate', 'reseal']) {
      const job = find('everything', 'Job', ending);
      expect(volumesOf(job)).toEqual(expect.arrayContaining([ca, database]));
      const [container] = (podOf(job as KubernetesObject)?.['containers'] ?? []) as Fields[];
      expect(mounted(container)).toEqual(expect.arrayContaining(places));
      expect(JSON.stringify(container?.['env'])).toContain('NODE_EXTRA_CA_CERTS');
    }
    for (const name of ['ca', 'database-tls', 'redis-tls'])
      expect(volumesOf(find('defaults', 'Deployment')).map((volume) => volume['name'])).not.toContain(name);
  });

  test('lie behind helpers, names and rules of their own, which Jobs have as the gateway does', () => {
    const extra = { to: [{ ipBlock: { cidr: '10.40.0.0/16' } }] };
    for (const ending of ['everything', '-jobs'])
      expect(egressOf('everything', ending)).toContainEqual(extra);
    expect(JSON.stringify(egressOf('everything', '-jobs'))).toContain('"port":443');
    expect(JSON.stringify(egressOf('ha', '-jobs'))).not.toContain('"port":443');
    for (const [kind, ending] of [
      ['Deployment', ''],
      ['Job', 'migrate'],
      ['Job', 'reseal'],
    ] as const) {
      const object = find('everything', kind, ending) as KubernetesObject;
      const pod = podOf(object) as Fields;
      const helper = { name: 'sql-proxy', restartPolicy: 'Always' };
      expect(pod['initContainers']).toContainEqual(expect.objectContaining(helper));
      expect(pod['dnsConfig']).toEqual({ options: [{ name: 'ndots', value: '2' }] });
      const certificates = { name: 'certificates', configMap: { name: 'certificates' } };
      expect(volumesOf(object)).toContainEqual(certificates);
      const container = kind === 'Job' ? (pod['containers'] as Fields[])[0] : gatewayOf('everything');
      const mount = { name: 'certificates', mountPath: '/etc/certificates', readOnly: true };
      expect(container?.['volumeMounts']).toContainEqual(mount);
      // What is the gateway's own, or may be made by the release, is not there before it.
      const isJob = kind === 'Job';
      expect(JSON.stringify(pod).includes('spool-watcher')).toBe(!isJob);
      expect(volumesOf(object).some(({ name }) => name === 'unshared')).toBe(!isJob);
    }
  });

  test('have addresses of either family', () => {
    expect(env('everything')).toMatchObject({ GW_HOST: '::', GW_ADMIN_HOST: '::' });
    expect(env('defaults')).toMatchObject({ GW_HOST: '0.0.0.0', GW_ADMIN_HOST: '0.0.0.0' });
    expect(find('everything', 'Service', 'everything')?.spec).toMatchObject({
      ipFamilyPolicy: 'PreferDualStack',
      ipFamilies: ['IPv6', 'IPv4'],
    });
    // With both, Prometheus would find each pod twice.
    expect(find('everything', 'Service', '-metrics')?.spec).toMatchObject({
      ipFamilyPolicy: 'SingleStack',
      ipFamilies: ['IPv6'],
    });
    for (const ending of ['model-gateway', '-metrics']) {
      expect(find('defaults', 'Service', ending)?.spec).not.toHaveProperty('ipFamilies');
      expect(find('defaults', 'Service', ending)?.spec).not.toHaveProperty('ipFamilyPolicy');
    }
  });
});

describe('the ways in', () => {
  test('let streams of the longest request pass', () => {
    expect(find('ha', 'Ingress')?.metadata.annotations).toMatchObject({
      'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
      'nginx.ingress.kubernetes.io/proxy-read-timeout': '330',
      'nginx.ingress.kubernetes.io/proxy-next-upstream': 'off',
    });
    expect(get(find('watch', 'HTTPRoute'), 'spec', 'rules', 0, 'timeouts')).toEqual({
      request: '630s',
      backendRequest: '630s',
    });
  });

  test('let annotations of the user win over the preset', () => {
    expect(find('everything', 'Ingress')?.metadata.annotations).toMatchObject({
      'alb.ingress.kubernetes.io/target-type': 'instance',
      'alb.ingress.kubernetes.io/load-balancer-attributes': 'idle_timeout.timeout_seconds=430',
    });
  });
});

describe('the extras', () => {
  test('replace variables of the chart, add containers in the right order, fill in templates', () => {
    expect(env('everything')['GW_LOG_LEVEL']).toBe('debug');
    const pod = podOf(find('everything', 'Deployment') as KubernetesObject) as Fields;
    const names = (pod['initContainers'] as Fields[]).map((entry) => [entry['name'], entry['restartPolicy']]);
    expect(names).toEqual([
      ['otel-collector', 'Always'],
      ['sql-proxy', 'Always'],
      ['spool-watcher', 'Always'],
      ['wait', undefined],
    ]);
    expect(find('everything', 'ConfigMap', 'everything-extra')?.data).toEqual({ release: 'model-gateway' });
    expect(find('everything', 'ConfigMap', 'everything-text')).toBeDefined();
  });

  test('name the whole command, whatever entry point the image has', () => {
    for (const { objects } of cases) {
      const others = objects
        .filter(({ kind }) => kind === 'Job' || kind === 'Pod')
        .flatMap((object) => optional(podOf(object)));
      for (const pod of others)
        for (const container of pod['containers'] as Fields[]) expect(container['command']).toContain('node');
    }
  });

  test('run migrations before the release and reseal after it', () => {
    const hook = (ending: string) =>
      find('everything', 'Job', ending)?.metadata.annotations?.['helm.sh/hook'];
    expect(hook('migrate')).toBe('pre-install,pre-upgrade');
    expect(hook('reseal')).toBe('post-upgrade');
    expect(env('everything')['GW_MIGRATE']).toBe('off');
    expect(env('defaults')['GW_MIGRATE']).toBe('boot');
  });
});

describe('the sidecar', () => {
  test('starts before the application, is ready before it, and listens on loopback', () => {
    const pod = podOf(find('sidecar', 'Deployment') as KubernetesObject) as Fields;
    expect(gatewayOf('sidecar')).toMatchObject({
      restartPolicy: 'Always',
      startupProbe: { httpGet: { path: '/readyz', port: 'admin' } },
    });
    expect((pod['containers'] as Fields[]).map((entry) => entry['name'])).toEqual(['assistant']);
    expect(env('sidecar')).toMatchObject({
      GW_PROFILE: 'sidecar',
      GW_HOST: '127.0.0.1',
      GW_SERVICE_KEY_FILE: '/run/secrets/model-gateway/service-key',
      GW_PROVIDER_KEYS_FILE: '/run/secrets/model-gateway/provider-keys.yaml',
    });
    expect(objectsOf('sidecar').map((object) => object.kind)).not.toContain('NetworkPolicy');
  });
});
