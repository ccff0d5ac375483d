/** The image of the Dockerfile: what it says of itself, how it starts, what it may do. */
import { execFileSync } from 'node:child_process';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { kubectl, must } from '../cluster/cluster.ts';
import { imageName } from '../harness/stage/version.ts';
import { tellMeasured } from './support/measured.ts';
import { execIn, logOf, podsOf, untilPod } from './support/pods.ts';
import type { Release } from './support/release.ts';
import { sharedRelease } from './support/release.ts';

/** What the Dockerfile adds to its base, uncompressed. Declarations and maps that stay in would double it. */
const mostAddedMiB = 100;

const archive = process.env['TEST_NODE_IMAGE'] ?? '';
const fromArchive = (name: string): Buffer =>
  execFileSync('tar', ['--extract', '--to-stdout', '--file', archive, name], { maxBuffer: 2 ** 30 });

interface ImageConfig {
  readonly User: string;
  readonly Cmd: readonly string[];
  readonly Entrypoint?: readonly string[];
  readonly ExposedPorts: Readonly<Record<string, object>>;
  readonly Healthcheck: { readonly Test: readonly string[] };
  readonly Env: readonly string[];
}

describe('the image', () => {
  const [manifest] = JSON.parse(fromArchive('manifest.json').toString()) as [
    { Config: string; Layers: string[] },
  ];
  const { config } = JSON.parse(fromArchive(manifest.Config).toString()) as { config: ImageConfig };

  test('is started as Node by a user that is not root, with its ports and a health check', () => {
    expect(config).toMatchObject({
      User: '65532:65532',
      Cmd: ['node', 'dist/main.js'],
      ExposedPorts: { '8080/tcp': {}, '9090/tcp': {} },
    });
    expect(config.Entrypoint ?? []).toEqual([]);
    expect(config.Env).toContain('NODE_ENV=production');
    expect(config.Healthcheck.Test.slice(0, 2)).toEqual(['CMD', 'node']);
  });

  test('is small', () => {
    const [base = 0, ...added] = manifest.Layers.map((layer) => fromArchive(layer).length / 2 ** 20);
    const total = added.reduce((sum, size) => sum + size, 0);
    tellMeasured(
      `image: ${added.map(Math.round)} MiB added to a base of ${Math.round(base)} MiB, uncompressed`,
    );
    expect(total).toBeLessThan(mostAddedMiB);
  });
});

describe('a container', () => {
  let release: Release;
  let pod: string;

  beforeAll(async () => {
    release = await sharedRelease();
    pod = (await podsOf(release))[0]?.metadata.name ?? '';
  });

  const inPod = (...command: string[]) => execIn(release.namespace, pod, 'model-gateway', ...command);

  test('has Node as its first process, as user 65532 without any capability', async () => {
    expect(await inPod('cat', '/proc/1/cmdline')).toBe('node\0dist/main.js\0');
    const status = await inPod('cat', '/proc/1/status');
    expect(status).toMatch(/^Uid:\t65532\t65532/m);
    expect(status).toMatch(/^CapEff:\t0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
  });

  test('cannot write to its own root', async () => {
    expect(await inPod('cat', '/proc/mounts')).toMatch(/^\S+ \/ \S+ ro[, ]/m);
    await inPod('touch', '/tmp/a', '/var/lib/model-gateway/a');
  });

  test('answers the health check of the image', async () => {
    const [, ...check] = healthCheck();
    await inPod(...check);
  });

  function healthCheck(): readonly string[] {
    const [manifest] = JSON.parse(fromArchive('manifest.json').toString()) as [{ Config: string }];
    const { config } = JSON.parse(fromArchive(manifest.Config).toString()) as { config: ImageConfig };
    return config.Healthcheck.Test;
  }

  test('without DATABASE_URL says so on one line and ends with 1', async () => {
    const namespace = inject('namespace');
    const security = {
      ...{ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      ...{ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    };
    const bare = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'bare', labels: { test: 'bare' } },
      spec: {
        restartPolicy: 'Never',
        containers: [{ name: 'a', image: imageName, securityContext: security }],
      },
    };
    await must(kubectl(['-n', namespace, 'apply', '-f', '-'], JSON.stringify(bare)));
    const ended = await untilPod(namespace, 'test=bare', ({ status }) => status.phase === 'Failed');
    expect(ended.status.containerStatuses?.[0]?.state.terminated?.exitCode).toBe(1);
    expect(await logOf(namespace, 'bare')).toBe(
      'model-gateway serve: DATABASE_URL is not set. (For a trial without a database: npm start.)\n',
    );
    await must(kubectl(['-n', namespace, 'delete', 'pod', 'bare']));
  });
});
