import { expect } from 'vitest';
import type { FakeVendor } from '../harness/vendors/fake-vendor.ts';
import type { Script } from '../harness/vendors/vendor-reply.ts';
import type { Client } from './client.ts';
import type { Call, Failure, Reply, Seen } from './driver.ts';
import type { Route } from './routes.ts';
import type { Saying } from './vendor-answers.ts';

/** What one scenario works with: a client, the way to a vendor, and the vendor. */
export interface Stage {
  readonly client: Client;
  readonly route: Route;
  readonly vendor: FakeVendor;
  /** The standing script of all vendors. */
  everyVendor(script: Script): void;
  /** What the vendor of the route answers to its next requests. */
  says(...sayings: Saying[]): void;
  ask(action: string, additions?: Partial<Call>): Promise<Reply>;
}

export type Scenario = (stage: Stage) => Promise<void>;

/** What the client's user got; the test fails when it was an error. */
export async function seen(stage: Stage, action: string, additions?: Partial<Call>): Promise<Seen> {
  const reply = await stage.ask(action, additions);
  if (reply.seen === undefined) throw new Error(`${action} failed: ${JSON.stringify(reply.failure)}`);
  return reply.seen;
}

/** The error that the client's user got. */
export async function failed(stage: Stage, action: string, additions?: Partial<Call>): Promise<Failure> {
  const reply = await stage.ask(action, additions);
  if (reply.failure === undefined) throw new Error(`${action} did not fail: ${JSON.stringify(reply.seen)}`);
  return reply.failure;
}

/** The block names the vendor that answered, and no other was asked. */
export function expectVendor(stage: Stage, answer: Seen): void {
  expect(stage.vendor.ledger.length).toBeGreaterThan(0);
  if (!stage.client.showsBlock) return;
  const mode = stage.route.byMode ? stage.route.model : 'override';
  expect(answer.gateway).toMatchObject({ provider: stage.route.vendor, mode, cache_hit: false });
}
