import { countedFamilies } from './counted-families.ts';
import { readFamilies } from './read-families.ts';

/**
 * Every metric family of the gateway: name, kind, help, labels and the most label sets; `npm run generate` makes
 * the table of `docs/telemetry.md` of them. Label values come from closed lists, which stand beside their types.
 *
 * Conventions: https://prometheus.io/docs/practices/naming/ for names and units. `gen_ai_*` are those of
 * https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics/ and `http_server_*` those of
 * https://opentelemetry.io/docs/specs/semconv/http/http-metrics/, written as
 * https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/ says.
 */
export const metricFamilies = { ...countedFamilies, ...readFamilies } as const;

type MetricFamilies = typeof metricFamilies;
export type FamilyName = keyof MetricFamilies;

/** The names of the families of a kind. */
export type FamilyNameOf<Kind extends MetricFamilies[FamilyName]['kind']> = {
  [Name in FamilyName]: MetricFamilies[Name]['kind'] extends Kind ? Name : never;
}[FamilyName];

/** The names of a family's labels, in order. */
export type LabelsOf<Name extends FamilyName> = MetricFamilies[Name]['labels'];
