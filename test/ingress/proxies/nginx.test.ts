import { describe, expect, test } from 'vitest';
import { runHelmTest } from '../../chart/helm-test-script.ts';
import { useGateway } from '../../harness/gateway/use-gateway.ts';
import { question, rejection } from '../asking.ts';
import { startDyingPods } from '../dying-pods.ts';
import { tellsWhenTheClientLeaves } from '../leaving.ts';
import { gatewayGivesUpFirst } from '../limits.ts';
import type { ControllerSettings } from '../nginx.ts';
import { startNginx } from '../nginx.ts';
import { presetAnnotations } from '../preset.ts';
import { clientOf, portOf } from '../rig.ts';
import { servesTheOfficialClient } from '../serving.ts';

/** The official client through nginx, as ingress-nginx configures it for what `ingress.preset: nginx` renders. */

const annotation = (name: string) => `nginx.ingress.kubernetes.io/${name}`;

describe('nginx with the preset', () => {
  const start = async (ports: readonly number[], tables = {}) =>
    startNginx(await presetAnnotations('nginx', { tables }), ports);
  const startImpatient = async (ports: readonly number[]) => {
    const annotations = { [annotation('proxy-read-timeout')]: '1' };
    return startNginx(await presetAnnotations('nginx', { annotations }), ports);
  };
  servesTheOfficialClient((ports) => start(ports));
  tellsWhenTheClientLeaves((ports) => start(ports));
  gatewayGivesUpFirst({ start, startImpatient });
});

describe('helm test behind an nginx that buffers', () => {
  // Chunks of HTTP/1.1 are passed on as they come even then, by nginx 1.22.
  const buffering: ControllerSettings = { 'proxy-buffering': 'on', 'proxy-http-version': '1.0' };
  const stubborn: ControllerSettings = {
    ...buffering,
    'http-snippet': 'proxy_ignore_headers X-Accel-Buffering;',
  };
  const gateway = useGateway();

  async function helmTest(preset: string, settings: ControllerSettings, annotations = {}) {
    const proxy = await startNginx(
      await presetAnnotations(preset, { annotations }),
      [portOf(gateway)],
      settings,
    );
    try {
      return await runHelmTest('streaming', gateway, {
        TEST_STREAM_URL: proxy.url,
        TEST_INGRESS_PRESET: preset,
      });
    } finally {
      await proxy.stop();
    }
  }

  test.each([
    ['the preset’s annotations switch it off', 'nginx', stubborn],
    ['without the preset, our X-Accel-Buffering header does', 'none', buffering],
  ])('passes: %s', async (_name, preset, settings) => {
    expect(await helmTest(preset, settings)).toMatchObject({
      code: 0,
      output: expect.stringContaining('streaming: ok'),
    });
  });

  test.each([
    ['nobody switches it off', 'none', {}, 'see ingress.preset'],
    [
      'the operator’s own annotations switch it on',
      'nginx',
      { [annotation('proxy-buffering')]: 'on', [annotation('proxy-http-version')]: '1.0' },
      annotation('proxy-buffering: "off"'),
    ],
  ])('fails and names what is missing: %s', async (_name, preset, annotations, named) => {
    const { code, output } = await helmTest(preset, stubborn, annotations);
    expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining('a proxy buffers') });
    expect(output).toContain(named);
  });
});

test('nginx repeats a request at another pod when it is told to: so the tests would see it', async () => {
  const pods = await startDyingPods(2);
  const annotations = { [annotation('proxy-next-upstream')]: 'error non_idempotent' };
  const proxy = await startNginx(await presetAnnotations('nginx', { annotations }), pods.ports);
  try {
    await rejection(clientOf(proxy).chat.completions.create(question));
    expect(pods.requests()).toBe(2);
  } finally {
    await proxy.stop();
    pods.close();
  }
});

test('an annotation of the chart that these tests cannot translate fails them', async () => {
  const annotations = await presetAnnotations('nginx', { annotations: { [annotation('limit-rps')]: '5' } });
  await expect(startNginx(annotations, [])).rejects.toThrow('limit-rps');
});
