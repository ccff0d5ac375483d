import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { guardedMemoryShare } from '../../src/adapters/system/process-memory.ts';

/** What the chart renders by default; `npm test` holds this file to the templates. */
const rendered = join(import.meta.dirname, '../chart/rendered/defaults.yaml');

const deploymentSchema = z.object({
  kind: z.literal('Deployment'),
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.array(
          z.object({
            name: z.string(),
            env: z.array(z.object({ name: z.string(), value: z.string().optional() })).default([]),
            resources: z.object({ limits: z.object({ memory: z.string().regex(/^\d+Mi$/) }) }).optional(),
          }),
        ),
      }),
    }),
  }),
});

/** Settings that the chart takes from its own world, or that the stage needs otherwise. */
const ownSettings =
  /^(PORT|DATABASE_|REDIS_|GW_(HOST|ADMIN_|SEALING_|TABLES_|DATA_DIR|SPOOL_DIR|DRAIN_|OUTBOUND_|REGISTRATION|MIGRATE|PROFILE|LOG_LEVEL))/;

export interface ChartProcess {
  /** Variables as an installation with default values has them, NODE_OPTIONS among them. */
  readonly env: Readonly<Record<string, string>>;
  /** The container's memory limit: a process that was larger for a moment has been killed. */
  readonly limitBytes: number;
}

/** The gateway's process as the chart's defaults make it. */
export function chartProcess(): ChartProcess {
  const documents = parseAllDocuments(readFileSync(rendered, 'utf8')).map((one) => one.toJS() as unknown);
  const deployment = documents
    .map((one) => deploymentSchema.safeParse(one))
    .find(({ success }) => success)?.data;
  const container = deployment?.spec.template.spec.containers.find(({ name }) => name === 'model-gateway');
  const limit = container?.resources?.limits.memory;
  if (container === undefined || limit === undefined)
    throw new Error(`No gateway with a memory limit in ${rendered}`);
  const settings = container.env.filter(({ name, value }) => value !== undefined && !ownSettings.test(name));
  const limitBytes = Number.parseInt(limit, 10) * 1024 * 1024;
  // As the process finds out by itself where it is in that container.
  const guard = { GW_MAX_MEMORY_BYTES: String(Math.floor(limitBytes * guardedMemoryShare)) };
  return {
    env: { ...Object.fromEntries(settings.map(({ name, value = '' }) => [name, value])), ...guard },
    limitBytes,
  };
}

/** The most that was resident of a process at any time, files' pages included. */
export const peakBytes = (pid: number): number =>
  Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) * 1024;
