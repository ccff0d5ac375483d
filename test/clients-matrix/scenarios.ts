import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { tokensThen } from '../harness/vendors/vendor-plans.ts';
import type { ReceivedRequest } from '../harness/vendors/vendor-reply.ts';
import type { Seen } from './driver.ts';
import type { Scenario, Stage } from './stage.ts';
import { expectVendor, seen } from './stage.ts';
import { forcedToolSeen, picturesSeen, schemaSeen, toolResultsSeen, toolsSeen } from './vendor-view.ts';

interface Questions {
  readonly image: string;
  readonly imageUrl: string;
  readonly toolResult: string;
  readonly tools: readonly { readonly name: string }[];
  readonly schema: { readonly properties: unknown; readonly required: unknown };
}

const questionsFile = join(import.meta.dirname, 'drivers/questions.json');
const questions = JSON.parse(readFileSync(questionsFile, 'utf8')) as Questions;

/** Every answer is compared with one of these, whichever vendor gave it: so no client can tell them apart. */
const text = ['Namaste', ', ', 'दुनिया', ' 🌏.'];
const usage = [11, 7, 18];
/** Parallel calls: plain, with much that JSON escapes, and without arguments. */
const toolCalls = [
  { id: 'call_a', name: 'weather', arguments: '{"city":"Pune"}' },
  { id: 'call_b', name: 'note', arguments: '{"text":"\\"नमस्ते\\"\\n🌏 {}","tags":["a","}"]}' },
  { id: 'call_c', name: 'now', arguments: '' },
];
const wantedCalls = toolCalls.map((call) => ({
  id: call.id,
  name: call.name,
  input: JSON.parse(call.arguments || '{}') as unknown,
}));
const report = { city: 'Pune', degrees: 31.5, tags: ['warm', '"dry"'] };
const reportText = JSON.stringify(report).match(/.{1,5}/g) ?? [];
const reportCall = { id: 'call_r', name: 'report', arguments: JSON.stringify(report) };

/** A client that leaves is noticed within 100 ms; the rest is for a busy machine. */
const abortLimitMs = 2_000;

function expectText(stage: Stage, answer: Seen): void {
  const finish = stage.client.finish.text;
  expect(answer).toMatchObject({ text: text.join(''), toolCalls: [], finish });
  expect(answer.usage).toEqual(usage);
  expectVendor(stage, answer);
}

function expectCalls(stage: Stage, answer: Seen): void {
  const finish = stage.client.finish.tools;
  expect(answer).toMatchObject({ text: '', toolCalls: wantedCalls, finish });
  expect(answer.usage).toEqual(usage);
  expectVendor(stage, answer);
  expect(toolsSeen(lastRequest(stage))).toEqual(questions.tools.map((tool) => tool.name));
}

function expectReport(stage: Stage, answer: Seen): void {
  expect(answer.object).toEqual(report);
  expect(answer).toMatchObject({ toolCalls: [], finish: stage.client.finish.text });
  expect(answer.usage).toEqual(usage);
  expectVendor(stage, answer);
  const { properties, required } = questions.schema;
  expect(schemaSeen(lastRequest(stage))).toMatchObject({ properties, required, additionalProperties: false });
}

function lastRequest(stage: Stage): ReceivedRequest {
  const request = stage.vendor.ledger.at(-1);
  if (request === undefined) throw new Error(`${stage.route.vendor} was not asked.`);
  return request;
}

async function showPicture(stage: Stage, action: string, picture: string): Promise<void> {
  stage.says({ text });
  expectText(stage, await seen(stage, action));
  expect(picturesSeen(lastRequest(stage))).toEqual([picture]);
}

/** What goes well. */
export const scenarios: readonly (readonly [name: string, run: Scenario])[] = [
  [
    'chat',
    async (stage) => {
      stage.says({ text });
      expectText(stage, await seen(stage, 'chat'));
    },
  ],
  [
    'stream',
    async (stage) => {
      stage.says({ text });
      const answer = await seen(stage, 'stream');
      expectText(stage, answer);
      expect(answer.pieces).toBe(text.length);
    },
  ],
  [
    'tools',
    async (stage) => {
      stage.says({ toolCalls });
      expectCalls(stage, await seen(stage, 'tools'));
    },
  ],
  [
    'stream-tools',
    async (stage) => {
      stage.says({ toolCalls });
      expectCalls(stage, await seen(stage, 'stream-tools'));
    },
  ],
  [
    'tool-loop',
    async (stage) => {
      stage.says({ toolCalls }, { text });
      const answer = await seen(stage, 'tool-loop');
      expect(answer).toMatchObject({ text: text.join(''), finish: stage.client.finish.text });
      const results = toolCalls.map((call) => [call.id, questions.toolResult]);
      expect(toolResultsSeen(lastRequest(stage))).toEqual(results);
    },
  ],
  ['image', (stage) => showPicture(stage, 'image', `data:image/png;base64,${questions.image}`)],
  ['image-url', (stage) => showPicture(stage, 'image-url', questions.imageUrl)],
  [
    'json',
    async (stage) => {
      stage.says({ text: reportText });
      expectReport(stage, await seen(stage, 'json'));
    },
  ],
  [
    'stream-json',
    async (stage) => {
      stage.says({ text: reportText });
      expectReport(stage, await seen(stage, 'stream-json'));
    },
  ],
  [
    'json-by-tool',
    async (stage) => {
      stage.says({ toolCalls: [reportCall] });
      const answer = await seen(stage, 'json-by-tool');
      expect(answer.object).toEqual(report);
      expectVendor(stage, answer);
      expect(forcedToolSeen(lastRequest(stage))).toBe('report');
    },
  ],
  [
    'cancel',
    async (stage) => {
      stage.vendor.always(tokensThen(3, 'hang'));
      const answer = await seen(stage, 'cancel');
      const leftAtMs = performance.now();
      expect(answer.text).toMatch(/^t0 t1 (t2 )?$/);
      const request = lastRequest(stage);
      expect(await request.closedEarly).toBe(true);
      expect((request.peerClosedAtMs ?? Number.POSITIVE_INFINITY) - leftAtMs).toBeLessThan(abortLimitMs);
    },
  ],
];
