import {
  countBuffersWithHeap,
  inlineMore,
  keepCodeInPauses,
  markInTime,
  optimizeSooner,
  tellMoreShapesApart,
} from './engine-flags.ts';
import type { Settings } from './settings.ts';
import type { RunningGateway } from './wiring/app.ts';

/** Throws as `startGateway` does. */
export type StartGateway = (settings: Settings) => Promise<RunningGateway>;

/**
 * The one way in which a process becomes a gateway, of `serve` and of `npm start`. Tracing comes before all else is
 * imported: auto-instrumentation patches modules as they are loaded. Resolves with what starts the gateway, whose
 * modules are loaded meanwhile.
 */
export async function prepareGateway(settings: Pick<Settings, 'tracing'>): Promise<StartGateway> {
  markInTime();
  countBuffersWithHeap();
  keepCodeInPauses();
  optimizeSooner();
  tellMoreShapesApart();
  inlineMore();
  const { startTracing } = await import('./telemetry/tracing.ts');
  const tracing = await startTracing(settings.tracing);
  const load = async () => (await import('./wiring/app.ts')).startGateway;
  const loading = load();
  // It is told where it is waited for.
  loading.catch(() => undefined);
  return async (all) => (await loading)(all, tracing);
}
