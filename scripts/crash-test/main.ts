import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { addSelfHosted, CrashTestError, deleteKey } from './account.ts';
import type { Gateway } from './client.ts';
import { ownAddress } from './client.ts';
import type { Result } from './run.ts';
import { runOverride } from './run.ts';
import { table } from './table.ts';
import { runTier } from './tier.ts';
import type { CrashVendor } from './vendor.ts';
import { startVendor } from './vendor.ts';

const usage = `npm run crash-test -- --url http://gateway:8080 --key gw_… [options]

Sends the classic faults of upstreams through a deployment of the gateway, from a vendor that this command is, and says
how each ended: pass (the whole answer, or the vendor's own refusal), safe (the answer is lost, and the client was told),
fail (anything else; then the exit code is 1).

  --vendor-host HOST   this machine as the gateway reaches it; default: our address on the connection to the gateway
  --vendor-port PORT   where this command listens as a vendor; default: any free port
  --idle-seconds N     timeouts.stream_idle_seconds of the deployment's tables; default 60
  --tier               fallback too: at least two of GW_OPENAI_BASE_URL, GW_ANTHROPIC_BASE_URL, GW_TOGETHER_BASE_URL and
                       GW_SARVAM_BASE_URL of the gateway are http://VENDOR-HOST:VENDOR-PORT/openai (/anthropic, …)
  --mode MODE          the tier that is tried then; default gw/balanced
  --outage-seconds N   how long its first candidate is down; default 60
  --json               results as JSON instead of a table

The key should be that of an account of its own: keys named crash-test-… are added to it and deleted again.`;

interface Options {
  readonly gateway: Gateway;
  readonly vendorHost: string | undefined;
  readonly vendorPort: number;
  readonly idleSeconds: number;
  readonly tier: boolean;
  readonly mode: string;
  readonly outageSeconds: number;
  readonly json: boolean;
}

function wholeNumber(text: string, name: string, most: number): number {
  if (!/^\d+$/.test(text) || Number(text) > most)
    throw new CrashTestError(`--${name} is no number up to ${most}.`);
  return Number(text);
}

function readOptions(): Options | null {
  const { values } = parseArgs({
    options: {
      url: { type: 'string' },
      key: { type: 'string' },
      'vendor-host': { type: 'string' },
      'vendor-port': { type: 'string', default: '0' },
      'idle-seconds': { type: 'string', default: '60' },
      tier: { type: 'boolean', default: false },
      'outage-seconds': { type: 'string', default: '60' },
      mode: { type: 'string', default: 'gw/balanced' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help || values.url === undefined || values.key === undefined) return null;
  if (!URL.canParse(values.url)) throw new CrashTestError(`"${values.url}" is no URL.`);
  return {
    gateway: { url: values.url.replace(/\/+$/, ''), key: values.key },
    vendorHost: values['vendor-host'],
    vendorPort: wholeNumber(values['vendor-port'], 'vendor-port', 65_535),
    idleSeconds: wholeNumber(values['idle-seconds'], 'idle-seconds', 3_600),
    tier: values.tier,
    mode: values.mode,
    outageSeconds: wholeNumber(values['outage-seconds'], 'outage-seconds', 3_600),
    json: values.json,
  };
}

/** A port where nobody listens: it was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function overrideResults(options: Options, vendor: CrashVendor, host: string): Promise<Result[]> {
  const { gateway, idleSeconds } = options;
  const address = (port: number) => `http://${host.includes(':') ? `[${host}]` : host}:${port}/v1`;
  const reachable = await addSelfHosted(gateway, address(vendor.port));
  try {
    const nobody = await addSelfHosted(gateway, address(await closedPort()));
    try {
      const labels = { vendor: reachable.label, nobody: nobody.label };
      return await runOverride({ gateway, vendor, labels, idleSeconds });
    } finally {
      await deleteKey(gateway, nobody.id);
    }
  } finally {
    await deleteKey(gateway, reachable.id);
  }
}

async function crashTest(options: Options): Promise<number> {
  const { gateway, tier, mode, idleSeconds, outageSeconds } = options;
  const host = options.vendorHost ?? (await ownAddress(gateway.url));
  const vendor = await startVendor(options.vendorPort);
  try {
    if (!options.json)
      console.log(`The vendor of this test is http://${host}:${vendor.port}. This takes a minute or two.\n`);
    const results = await overrideResults(options, vendor, host);
    if (tier) results.push(...(await runTier({ gateway, vendor, mode, idleSeconds, outageSeconds })));
    console.log(options.json ? JSON.stringify(results) : table(results));
    return results.some(({ verdict }) => verdict === 'fail') ? 1 : 0;
  } finally {
    await vendor.close();
  }
}

try {
  const options = readOptions();
  if (options === null) console.log(usage);
  process.exitCode = options === null ? 2 : await crashTest(options);
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  const isExpected = error instanceof CrashTestError || code !== undefined;
  console.error(isExpected ? message || code : error);
  process.exitCode = 2;
}
