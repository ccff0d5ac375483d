import { setFlagsFromString } from 'node:v8';

/** Of what the old generation may grow by until the next full collection. */
const markFromPercent = 50;
const markFastFromPercent = 80;

/**
 * Lets the collector mark when half of its room is used. By default it begins when less is left than the young
 * generation takes, and that is always so where little lives for long: a gateway with 40 MB then marked without a
 * pause, once a second, a fifth of its CPU. Where much lives, it begins earlier than by default, and is done in time.
 */
export function markInTime(): void {
  setFlagsFromString(`--incremental-marking-soft-trigger=${markFromPercent}`);
  setFlagsFromString(`--incremental-marking-hard-trigger=${markFastFromPercent}`);
}

/** Calls of a function before V8 optimizes it fully; its own choice is 3,000. */
const callsBeforeOptimizing = 400;

/**
 * Lets V8 optimize sooner. What serves a request is called once or twice for each, so that by default thousands of
 * requests pass before a fresh replica costs what it will cost: 0.2 of a bare proxy's CPU in its first half minute.
 */
export function optimizeSooner(): void {
  setFlagsFromString(`--invocation-count-for-turbofan=${callsBeforeOptimizing}`);
}

/** Shapes of objects by which V8 tells the place of a member apart before it gives up; its own choice is 4. */
const shapesOfOnePlace = 16;

/**
 * Lets code that meets more sorts of objects look their members up without V8's one table of all of them: with all that
 * a request touches in between, that table has forgotten most by the next one. 0.05 to 0.09 of a bare proxy's CPU.
 */
export function tellMoreShapesApart(): void {
  setFlagsFromString(`--max-valid-polymorphic-map-count=${shapesOfOnePlace}`);
}

/**
 * Counts the memory of buffers with the collector's other limits. By default each 64 MiB of them that came since the
 * last full collection begins a new one, though the next collection of the young generation would free them all: with
 * 2,000 streams a second that was one a second, a third of all CPU, as soon as the young generation had grown.
 */
export function countBuffersWithHeap(): void {
  ifKnown('--external-memory-accounted-in-global-limit');
}

/** Node 22 has V8 12, which does not know the newer flags and would say so on standard error. */
function ifKnown(flag: string): void {
  if (Number.parseInt(process.versions.v8, 10) >= 13) setFlagsFromString(flag);
}

/**
 * Lets what was compiled outlive a pause. By default the collection that V8 makes some 8 s after the load fell forgets
 * the shapes of objects of which none is there, requests' among them, and with these all optimized code that knows
 * them: some 400 functions. The next requests then cost up to three times as much, until they are compiled anew. The
 * collection stays, and gives back what it finds.
 */
export function keepCodeInPauses(): void {
  ifKnown('--no-memory-reducer-favors-memory');
}

/** Bytecode that V8 copies into one function that it optimizes, and of one callee; its own choices are 920 and 460. */
const inlinedBytecode = 2000;
const inlinedBytecodeOfOne = 920;

/**
 * Lets optimized code hold more of what it calls. What serves a request is a chain of small functions: 0.02 to 0.05
 * of a bare proxy's CPU, and 0.01 ms of a first token on a machine that rests between requests, where each call is a
 * look into memory.
 */
export function inlineMore(): void {
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${inlinedBytecode}`);
  setFlagsFromString(`--max-inlined-bytecode-size=${inlinedBytecodeOfOne}`);
}
