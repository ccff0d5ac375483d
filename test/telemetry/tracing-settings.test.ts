import { describe, expect, test } from 'vitest';
import { readSettings, SettingsError } from '../../src/settings.ts';

const endpoint = 'http://collector:4318';

describe('tracing', () => {
  test.each<[on: boolean, environment: Record<string, string>]>([
    [false, {}],
    [false, { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
    [false, { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: endpoint }],
    [false, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'TRUE' }],
    [false, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'true ' }],
    [false, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: 'none' }],
    [true, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }],
    [true, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint }],
    [true, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'false' }],
  ])('is %s with %j', (on, environment) => {
    expect(readSettings(environment).tracing.enabled).toBe(on);
  });

  test.each([
    ['', []],
    [' self_hosted ,', ['self_hosted']],
    ['self_hosted,openai', ['self_hosted', 'openai']],
  ])('is told to nobody but %j', (text, providers) => {
    expect(readSettings({ GW_TRACE_PROPAGATE_TO: text }).tracing.propagateTo).toEqual(providers);
  });

  test.each([
    ['OTEL_TRACES_SAMPLER', 'parentbased_trace_id_ratio'],
    ['OTEL_TRACES_SAMPLER', 'PARENTBASED_ALWAYS_OFF'],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
    ['OTEL_TRACES_SAMPLER_ARG', '1%'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
    ['OTEL_TRACES_SAMPLER_ARG', '-0.1'],
  ])('does not record everything because %s is %s: it says so', (name, value) => {
    expect(() => readSettings({ [name]: value })).toThrow(new RegExp(`^${name}: `));
  });

  test.each([
    ['', '', 1, true],
    ['', '0.5', 1, true],
    ['always_on', '', 1, false],
    ['always_off', '0.5', 0, false],
    ['parentbased_always_on', '', 1, true],
    ['parentbased_always_off', '', 0, true],
    ['traceidratio', '0.5', 0.5, false],
    ['traceidratio', '', 1, false],
    ['parentbased_traceidratio', '0.01', 0.01, true],
    ['parentbased_traceidratio', '0', 0, true],
  ])('with the sampler %j and %j records a share of %d', (name, argument, share, followsCallers) => {
    const environment = { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: argument };
    expect(readSettings(environment).tracing.sampler).toEqual({ share, followsCallers });
  });

  test('is not told to a provider that does not exist', () => {
    expect(() => readSettings({ GW_TRACE_PROPAGATE_TO: 'self-hosted' })).toThrow(SettingsError);
    expect(() => readSettings({ GW_TRACE_PROPAGATE_TO: 'all' })).toThrow(/^GW_TRACE_PROPAGATE_TO: /);
  });
});
