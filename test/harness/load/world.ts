import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { GatewayUnderTest } from '../gateway/start-gateway.ts';
import { startGateway } from '../gateway/start-gateway.ts';
import { inProject } from '../stage/project.ts';

const VENDOR_START_MS = 10_000;

/** Whom the scripts speak to. */
export interface Urls {
  readonly url: string;
  readonly vendorUrl: string;
  /** Of the gateway. */
  readonly metricsUrl: string;
}

interface Vendor {
  readonly url: string;
  stop(): void;
}

/** What `work(urls)` gives; vendor and gateway are gone afterwards, whatever happens. */
export async function withGateway<T>(databaseUrl: string, work: (urls: Urls) => Promise<T>): Promise<T> {
  process.env['TEST_DATABASE_URL'] = databaseUrl;
  const vendor = await startVendor();
  let gateway: GatewayUnderTest | undefined;
  try {
    gateway = await startGateway({
      env: { GW_OPENAI_BASE_URL: vendor.url, GW_SARVAM_BASE_URL: vendor.url },
    });
    const { url, adminUrl } = gateway;
    return await work({ url, vendorUrl: vendor.url, metricsUrl: `${adminUrl}/metrics` });
  } finally {
    await gateway?.stop();
    vendor.stop();
  }
}

/** A process of its own, so that the load is not on this one. */
async function startVendor(): Promise<Vendor> {
  const child = fork(inProject('load-tests', 'vendor.mjs'));
  const signal = AbortSignal.timeout(VENDOR_START_MS);
  const [{ url }] = (await once(child, 'message', { signal })) as [{ url: string }];
  return { url, stop: () => child.kill() };
}
