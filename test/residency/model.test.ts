/**
 * India prompts in a random world: SPEC 4.5, routing rule 3, and what operators demand for a user or for everybody, as a
 * model. Users, keys, policies, tables, servers and time are driven by random steps through the real chat route. No byte
 * of an India prompt may reach a server outside India, every answer to an India request was made in India, and its row
 * says by whose word. `GW_RESIDENCY_SEED=<number>` or `random` makes another run.
 */

import { expect, test } from 'vitest';
import type { ResidencyBinder } from '../../src/core/request/residency.ts';
import type { SettledRequest } from '../../src/core/settled-request.ts';
import { Random, seedIn } from '../harness/measure/random.ts';
import { indiaPrompt } from './servers.ts';
import type { UserId } from './world.ts';
import { legacyName, ResidencyWorld, userIds } from './world.ts';

/** The whole run takes about a minute of one core; `.ci/run` asks for it. */
const steps = Number(process.env['GW_RESIDENCY_STEPS'] ?? 20_000);
const limitMs = 600_000;
/** Fewer and the counts at the end would say little. */
const enough = 10;

interface Asked {
  readonly user: UserId;
  readonly id: string;
  /** By whose word it has to stay in India; null: it may go anywhere. */
  readonly binder: ResidencyBinder | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Readonly<Record<string, unknown>>;
}

type Answer = { readonly statusCode: number; readonly body: string };

/** A response that was destroyed half way. */
const cut: Answer = { statusCode: 0, body: '' };

class Model {
  readonly counts = {
    requests: 0,
    boundByRequest: 0,
    boundByUser: 0,
    boundByDeployment: 0,
    indiaAnswers: 0,
    indiaFromCache: 0,
    indiaFromOwnServers: 0,
    residencyErrors: 0,
    afterSunset: 0,
    answersFromOutside: 0,
  };
  readonly problems: string[] = [];
  readonly world: ResidencyWorld;
  readonly #random: Random;
  #prompts = 0;

  constructor(random: Random) {
    this.#random = random;
    this.world = new ResidencyWorld(random);
    for (let index = 0; index < 20; index += 1) this.world.addKey();
  }

  async step(): Promise<void> {
    const dice = this.#random.fraction();
    if (dice < 0.7) await this.#ask();
    else if (dice < 0.76) this.world.addKey();
    else if (dice < 0.8) this.world.deleteKey();
    else if (dice < 0.82) this.world.reload();
    else if (dice < 0.83) this.world.decide();
    else if (dice < 0.92) this.world.outage();
    else if (dice < 0.96) this.world.timePasses();
    else if (dice < 0.99) this.world.hear();
    else this.world.forgetAnswers();
  }

  /** One request, or several at once, so that equal ones meet in flight. */
  async #ask(): Promise<void> {
    const user = this.#random.pick(userIds);
    const shared = this.#random.chance(0.4) ? `prompt-shared-${this.#random.below(6)}` : null;
    const count = shared !== null && this.#random.chance(0.3) ? 3 : 1;
    const asked = Array.from({ length: count }, () => this.#request(user, shared));
    const answers = await Promise.all(
      asked.map(({ headers, payload }) =>
        this.world.app
          .inject({ method: 'POST', url: '/v1/chat/completions', headers, payload })
          .catch(() => cut),
      ),
    );
    const settled = this.world.settled();
    for (const [index, answer] of answers.entries()) {
      const one = asked[index] as Asked;
      this.#judge(one, answer);
      const row = settled.get(one.id);
      if (row !== undefined) this.#judgeRow(one, row);
    }
  }

  #request(user: UserId, shared: string | null): Asked {
    const random = this.#random;
    const headers: Record<string, string> = { 'x-user': user };
    const asks = random.chance(0.5);
    if (asks) Object.assign(headers, this.#residencyHeader());
    const binder = this.world.binderOf(user) ?? (asks ? 'request' : null);
    if (shared !== null) headers['x-gateway-cache'] = 'true';
    if (random.chance(0.35)) headers[this.#name('override-model', 0.2)] = this.#override(user);
    this.#prompts += 1;
    const id = `request-${this.#prompts}`;
    headers['x-request-id'] = id;
    const text = shared ?? `${binder !== null ? indiaPrompt : 'prompt-any-'}${this.#prompts}`;
    const payload = {
      model: random.pick(['gw/cheap', 'gw/balanced', 'gw/premium']),
      messages: [{ role: 'user', content: text }],
      stream: random.chance(0.4),
      ...(random.chance(0.1) ? { n: 2 } : {}),
      ...(random.chance(0.1)
        ? { tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] }
        : {}),
      ...(random.chance(0.1) ? { response_format: { type: 'json_object' } } : {}),
      ...(random.chance(0.1) ? { user: text } : {}),
    };
    return { user, id, binder, headers, payload };
  }

  /** In the words of today, of before the rename, or both. */
  #residencyHeader(): Record<string, string> {
    const value = this.#random.pick(['india', 'India', ' INDIA ']);
    const headers = { [this.#name('residency', 0.3)]: value };
    return this.#random.chance(0.05) ? { ...headers, 'x-gateway-residency': 'india' } : headers;
  }

  #name(header: string, legacyShare: number): string {
    const legacy = this.world.hasLegacy && this.#random.chance(legacyShare);
    return `x-${legacy ? legacyName : 'gateway'}-${header}`;
  }

  #override(user: UserId): string {
    const selector = this.#random.pick(this.world.selectors(user));
    return this.#random.pick([
      'openai:gpt-test',
      'anthropic:claude-test',
      'together:tog/test',
      'sarvam:sarvam-test',
      'self_hosted:llama',
      ...(selector === undefined ? [] : [`self_hosted/${selector}:llama`, `self_hosted/${selector}:llama`]),
    ]);
  }

  /** The row of a request that went on to the story: what held for it, and where its attempts went. */
  #judgeRow({ binder, headers }: Asked, row: SettledRequest): void {
    const { residencyBoundBy, residencyBound, candidates } = row;
    if (residencyBoundBy !== binder || residencyBound !== (binder === null ? null : 'india')) {
      const said = `${residencyBound} by ${residencyBoundBy}`;
      this.problems.push(`a row says ${said}, not ${binder}: ${JSON.stringify(headers)}`);
    }
    if (binder === null) return;
    if (binder === 'request') this.counts.boundByRequest += 1;
    else if (binder === 'user') this.counts.boundByUser += 1;
    else this.counts.boundByDeployment += 1;
    for (const tried of candidates) {
      if (tried.kind === 'tried' && tried.candidate.residency !== 'india')
        this.problems.push(`an India row has an attempt in ${tried.candidate.residency}`);
    }
  }

  #judge({ binder, headers }: Asked, { statusCode, body }: Answer): void {
    const { counts, world } = this;
    counts.requests += 1;
    if (statusCode === 500) this.problems.push(`500: ${body}`);
    if (statusCode === 422 && body.includes('"residency_error"')) counts.residencyErrors += 1;
    const isOld = Object.keys(headers).some((name) => name.startsWith(`x-${legacyName}-`));
    if (isOld && world.afterSunset) counts.afterSunset += 1;
    const origin = /made at (\S+) /.exec(body)?.[1];
    if (statusCode !== 200 || origin === undefined) return;
    const indian = world.servers.isIndian(origin);
    if (!indian) counts.answersFromOutside += 1;
    if (binder === null) return;
    counts.indiaAnswers += 1;
    if (!indian) this.problems.push(`an India request was answered with what ${origin} made: ${body}`);
    const said = /"residency_actual":"(\w+)"/.exec(body)?.[1];
    if (said === 'cache') counts.indiaFromCache += 1;
    if (origin.endsWith('.example.com')) counts.indiaFromOwnServers += 1;
    // A stream that was cut has no block.
    const whole = said !== undefined || !body.includes('[DONE]');
    if (said === 'global' || !whole) this.problems.push(`an India answer says ${said}: ${body}`);
  }
}

const seed = seedIn('GW_RESIDENCY_SEED');

test(`no byte of an India prompt leaves India in ${steps} random steps (seed ${seed})`, {
  timeout: limitMs,
}, async () => {
  const model = new Model(new Random(seed));
  const { servers } = model.world;
  for (let step = 1; step <= steps; step += 1) {
    await model.step();
    if (step % 1000 === 0) model.world.sweep();
    const found = [servers.violations, model.problems, model.world.bugs].flat();
    if (found.length > 0) expect.fail(`step ${step}, seed ${seed}: ${found.join('\n')}`);
  }
  await model.world.app.close();
  const { callsIn, callsOutside, indiaPromptsIn } = servers;
  const counts = { ...model.counts, callsIn, callsOutside, indiaPromptsIn };
  process.stdout.write(`residency model: ${steps} steps, seed ${seed}: ${JSON.stringify(counts)}\n`);
  // The model is of use only if all of this happens.
  for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(enough);
});
