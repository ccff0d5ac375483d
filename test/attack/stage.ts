import { recordFault } from '../harness/scorecard/scorecard.ts';
import type { Family } from './attack-case.ts';
import type { BatchResult } from './batch.ts';
import { runBatch } from './batch.ts';
import { warmUpFamilies } from './families.ts';
import type { Baseline } from './judge/quiet.ts';
import { baselineOf } from './judge/quiet.ts';
import { fixtureLine } from './seeds.ts';
import type { World } from './world.ts';
import { makeWorld } from './world.ts';

/** Looking for the seed of a failure ends after so long in all: a broken gateway fails every batch. */
const shrinkBudgetMs = Number(process.env['GW_ATTACK_SHRINK_MS'] ?? 90_000);
const shownSeeds = 10;
/** A batch that leaks so much does so each time; what an allocator keeps of a peak serves the next peak. */
const repeatedGrowthBytes = 8 * 1024 * 1024;
/** Bodies of 20 MB take some rounds until what is kept of them is enough for all. */
const mostRepeats = 3;

interface FamilyFigures {
  cases: number;
  failures: number;
  longestTurnCpuMs: number;
  peakBytes: number;
  rssBytes: number;
  bystanderMs: number;
  controlMs: number;
  slowness: number;
  ms: number;
}

/** Of a process that is not warm yet: everything is right. */
const unjudged: Baseline = {
  rssBytes: Number.POSITIVE_INFINITY,
  heldBytes: Number.POSITIVE_INFINITY,
  timers: 100,
  clientSockets: 100,
};

/** One gateway for the whole stage; a new one after a failure, so that no batch pays for another's. */
export class Stage {
  readonly #world: World;
  #baseline: Baseline = unjudged;
  #batches = 0;
  #shrinkLeftMs = shrinkBudgetMs;
  readonly #figures = new Map<string, FamilyFigures>();

  private constructor(world: World) {
    this.#world = world;
  }

  static async open(): Promise<Stage> {
    const stage = new Stage(await makeWorld());
    await stage.#warmUp();
    return stage;
  }

  close(): Promise<void> {
    return this.#world.close();
  }

  /** Runs a batch; the failures are fixture lines where the seed is known. */
  async run(family: Family, seeds: readonly number[]): Promise<{ result: BatchResult; failures: string[] }> {
    const startedAtMs = performance.now();
    const result = await this.#twiceIfGrown(family, seeds, await this.#runBatch(family, seeds));
    const failures = [...result.bySeed]
      .slice(0, shownSeeds)
      .map(([seed, problem]) => fixtureLine(family, seed, problem));
    if (result.bySeed.size > shownSeeds) failures.push(`# and ${result.bySeed.size - shownSeeds} more seeds`);
    const ms = performance.now() - startedAtMs;
    this.#note(family, seeds.length, result, ms);
    if (result.process.length > 0) {
      failures.push(`# ${family.name} ${seeds[0]} to ${seeds.at(-1)}: ${result.process.join('; ')}`);
      await this.#renew();
      if (seeds.length > 1) failures.push(...(await this.#shrink(family, seeds)));
    }
    // Told at once: a stage that is stopped has still said what it found.
    const lines = [`${family.name} ${seeds[0]}: ${seeds.length} cases, ${ms.toFixed(0)} ms`, ...failures];
    process.stdout.write(`${lines.join('\n')}\n`);
    return { result, failures };
  }

  /** A line per family: what was measured, here and on the scorecard. */
  report(): void {
    const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(0);
    process.stdout.write(`baseline ${mib(this.#baseline.rssBytes)} MiB, ${this.#baseline.timers} timers\n`);
    for (const [name, figures] of this.#figures) {
      const { cases, failures, longestTurnCpuMs, peakBytes, rssBytes, bystanderMs, controlMs, slowness, ms } =
        figures;
      const figure = [
        `${cases} cases in ${(ms / 1000).toFixed(0)} s`,
        `longest turn of the event loop ${longestTurnCpuMs.toFixed(0)} ms of CPU`,
        `peak ${mib(peakBytes)} MiB`,
        `${mib(rssBytes)} MiB once quiet`,
        `a bystander waited ${Math.max(0, bystanderMs).toFixed(0)} ms at most (${controlMs.toFixed(0)} ms where nobody attacks)`,
        `the machine was up to ${slowness.toFixed(1)} times slower than at its best`,
      ].join(', ');
      process.stdout.write(`${name}: ${failures} failures, ${figure}\n`);
      const required = 'the process lives, gives everything back, writes one row, and serves others in time';
      recordFault({ fault: `generated attacks: ${name}`, required, figure, passed: failures === 0 });
    }
  }

  /** Memory that grew and is held by nothing we know of is a leak when the same batch makes it grow each time. */
  async #twiceIfGrown(family: Family, seeds: readonly number[], result: BatchResult): Promise<BatchResult> {
    const { growth, process: problems } = result;
    if (growth === null) return result;
    if (problems.length > 0) return { ...result, process: [...problems, growth] };
    let before = result;
    for (let time = 1; time <= mostRepeats; time += 1) {
      const again = await this.#runBatch(family, seeds);
      const more = again.figures.rssBytes - before.figures.rssBytes;
      process.stdout.write(
        `# ${family.name} ${seeds[0]}: ${growth}; once more ${(more / 2 ** 20).toFixed(0)} MiB\n`,
      );
      if (more <= repeatedGrowthBytes) {
        this.#baseline = { ...this.#baseline, rssBytes: again.figures.rssBytes };
        return again;
      }
      before = again;
    }
    return { ...before, process: [...before.process, growth, 'and again each time'] };
  }

  async #renew(): Promise<void> {
    await this.#world.renew();
    await this.#warmUp();
  }

  /** Compiled code, pools and buffers are there before anything is measured. */
  async #warmUp(): Promise<void> {
    this.#baseline = unjudged;
    for (const family of warmUpFamilies) {
      const seeds = Array.from({ length: family.count }, (_, index) => index);
      await this.#runBatch(family, seeds);
    }
    this.#baseline = await baselineOf(this.#world);
  }

  #runBatch(family: Family, seeds: readonly number[]): Promise<BatchResult> {
    this.#batches += 1;
    // Unique among all stages of a database: rows and calls are found by it.
    return runBatch(this.#world, family, seeds, this.#baseline, `${process.pid}b${this.#batches}`);
  }

  /** Halves a batch until one seed is left that does it alone; none when it takes several. */
  async #shrink(family: Family, seeds: readonly number[]): Promise<string[]> {
    let left = seeds;
    let problem = '';
    while (left.length > 1 && this.#shrinkLeftMs > 0) {
      const startedAtMs = performance.now();
      const middle = Math.ceil(left.length / 2);
      const halves = [left.slice(0, middle), left.slice(middle)];
      let found: readonly number[] | null = null;
      for (const half of halves) {
        const { process: problems, growth } = await this.#runBatch(family, half);
        if (problems.length === 0 && growth === null) continue;
        await this.#renew();
        found = half;
        problem = [...problems, ...(growth === null ? [] : [growth])].join('; ');
        break;
      }
      this.#shrinkLeftMs -= performance.now() - startedAtMs;
      if (found === null) break;
      left = found;
    }
    if (left.length === 1 && problem !== '') return [fixtureLine(family, left[0] as number, problem)];
    return [`# not one seed alone; the fewest found: ${family.name}:${left[0]} to ${left.at(-1)}`];
  }

  #note(
    family: Family,
    cases: number,
    { bySeed, process: problems, figures }: BatchResult,
    ms: number,
  ): void {
    const before = this.#figures.get(family.name);
    this.#figures.set(family.name, {
      cases: (before?.cases ?? 0) + cases,
      failures: (before?.failures ?? 0) + bySeed.size + problems.length,
      longestTurnCpuMs: Math.max(before?.longestTurnCpuMs ?? 0, figures.longestTurnCpuMs),
      peakBytes: Math.max(before?.peakBytes ?? 0, figures.peakBytes),
      rssBytes: Math.max(before?.rssBytes ?? 0, figures.rssBytes),
      bystanderMs: Math.max(before?.bystanderMs ?? 0, figures.bystanderMs),
      controlMs: Math.max(before?.controlMs ?? 0, figures.controlMs),
      slowness: Math.max(before?.slowness ?? 1, figures.slowness),
      ms: (before?.ms ?? 0) + ms,
    });
  }
}
