import type { FakeVendor } from './fake-vendor.ts';
import { startFakeVendor } from './fake-vendor.ts';
import type { ReceivedRequest, Script } from './vendor-reply.ts';

export const vendorNames = ['openai', 'anthropic', 'together', 'sarvam'] as const;
export type VendorName = (typeof vendorNames)[number];

/** One fake vendor for each commercial provider. */
export interface VendorPack extends Readonly<Record<VendorName, FakeVendor>> {
  /** Environment settings that point a gateway at these vendors. */
  readonly env: Readonly<Record<string, string>>;
  /** Forgets all scripts and ledgers. */
  clear(): void;
  /** The standing script of every vendor. */
  always(script: Script): void;
  /** Names of the vendors that were called, in the order of their calls. */
  calls(): VendorName[];
  /** Every request of every vendor, in order of arrival. */
  ledger(): ReceivedRequest[];
  close(): Promise<void>;
}

/** Starts the four commercial vendors on free ports. */
export async function startVendorPack(): Promise<VendorPack> {
  const started = await Promise.all(
    vendorNames.map(async (name) => [name, await startFakeVendor()] as const),
  );
  const vendors = Object.fromEntries(started) as Record<VendorName, FakeVendor>;
  const all = started.map(([, vendor]) => vendor);
  const inOrder = () =>
    started
      .flatMap(([name, vendor]) => vendor.ledger.map((entry) => ({ name, entry })))
      .sort((a, b) => a.entry.receivedAtMs - b.entry.receivedAtMs);
  return {
    ...vendors,
    env: Object.fromEntries(
      started.map(([name, vendor]) => [`GW_${name.toUpperCase()}_BASE_URL`, vendor.url]),
    ),
    clear: () => {
      for (const vendor of all) vendor.clear();
    },
    always: (script) => {
      for (const vendor of all) vendor.always(script);
    },
    calls: () => inOrder().map(({ name }) => name),
    ledger: () => inOrder().map(({ entry }) => entry),
    close: async () => {
      await Promise.all(all.map((vendor) => vendor.close()));
    },
  };
}
