/** k8s/README.md, "Try it": its own commands, against a gateway configured as the evaluation overlay configures it. */
import { spawn } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startDemoServer } from '../../src/demo/demo-server.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { startRedis } from '../harness/servers/redis.ts';
import { useFolder, useServer } from '../harness/servers/use-started.ts';
import { readFile, readObjects, root } from './chart-files.ts';

interface Container {
  readonly name: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

/** Settings that name a file, a folder or a port of the pod: here they are elsewhere. */
const ofThePod = /_FILE$|^(PORT|GW_HOST|GW_ADMIN_PORT|GW_DATA_DIR|GW_SPOOL_DIR)$/;

function variablesOf(path: string): Record<string, string> {
  const deployment = readObjects(path).find(({ kind }) => kind === 'Deployment');
  const template = deployment?.spec?.['template'] as { spec: { containers: Container[] } };
  const gateway = template.spec.containers.find(({ name }) => name === 'model-gateway');
  return Object.fromEntries(
    (gateway?.env ?? []).flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
  );
}

/** The base's environment with the overlay's patch over it, as kustomize merges lists of named entries. */
function overlayEnvironment(): Record<string, string> {
  const merged = {
    ...variablesOf('k8s/base/model-gateway.yaml'),
    ...variablesOf('k8s/overlays/eval/deployment.yaml'),
  };
  return Object.fromEntries(Object.entries(merged).filter(([name]) => !ofThePod.test(name)));
}

function trySection(): string {
  const [, rest = ''] = readFile('k8s/README.md').split('## Try it');
  return rest.split('\n## ', 1)[0] ?? '';
}

/** The commands of the section that are typed once the gateway is there. */
function readmeCommands(): string {
  const blocks = [...trySection().matchAll(/```sh\n([\s\S]*?)```/g)].map(([, code = '']) => code);
  return blocks.slice(1).join('\n');
}

const folder = useFolder();
const redis = useServer(startRedis);
const demo = useServer(() => startDemoServer({ port: 0, host: '127.0.0.1' }));
const gateway = useGateway(() => ({
  redisUrl: redis.url,
  env: {
    ...overlayEnvironment(),
    GW_TABLES_FILE: join(root, 'k8s/base/tables.yaml'),
    GW_ADMIN_PORT: '0',
    GW_DRAIN_DELAY_SECONDS: '0',
    // A busy machine must not look like a busy gateway.
    GW_MAX_EVENT_LOOP_DELAY_MS: '0',
  },
}));

/** Runs the commands with a `kubectl` that knows the one answer they ask for: the address of the demo model. */
async function runCommands(commands: string): Promise<{ code: number | null; out: string }> {
  const kubectl = join(folder.path, 'kubectl');
  await writeFile(
    kubectl,
    `#!/bin/sh\ncase "$*" in *'get service demo-model'*clusterIP*) printf 127.0.0.1;; *) exit 1;; esac\n`,
  );
  await chmod(kubectl, 0o755);
  const here = commands
    .replaceAll('127.0.0.1:8080', new URL(gateway.url).host)
    .replaceAll(':8081', `:${new URL(demo.url).port}`);
  const env = { ...process.env, PATH: `${folder.path}:${process.env['PATH']}` };
  const child = spawn('sh', ['-eu', '-c', here], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += String(chunk)));
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, out })));
}

test('the overlay’s environment is what is tried', () => {
  expect(gateway.env).toMatchObject({ GW_OUTBOUND_POLICY: 'allow-private', GW_REGISTRATION: 'open' });
});

test('the commands lead from no user to an answer of the demo model', async () => {
  const commands = readmeCommands();
  expect(commands).toContain('/v1/users');
  const { code, out } = await runCommands(commands);
  expect(out).not.toContain('"error":{');
  expect(code, out).toBe(0);
  expect(out).toContain('"provider":"self_hosted"');
  expect(out).toContain('demo model');
  expect(out).toContain('"data":');
});

test('the address of the demo model is one that can be registered', () => {
  // A name without TLS is refused by the specification; the Service's address is not.
  expect(trySection()).not.toMatch(/http:\/\/demo-model/);
});
