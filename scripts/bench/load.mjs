import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { serveParent } from './worker.mjs';
import { EVENTS_PER_STREAM, jsonRequest, streamRequest } from './workload.mjs';

/** The clients: a closed loop, each connection sends its next request when it has the whole answer. */

/** Spreads the beginnings of paced streams, so that their events do not come in step. */
const SPREAD_MS = 20;
/** Streams that are opened at the same time when many are held. */
const OPENING = 50;
const NEWLINE = 0x0a;

const doneMark = Buffer.from('data: [DONE]\n\n');
const eventMark = Buffer.from('\n\n');
const path = '/v1/chat/completions';

let pool = null;
/** Streams that are held open: how to cut each. */
let held = [];

/** Reads one answer and checks it: 200; a stream has its events and its end. */
class Reading {
  controller = null;
  #settle;
  #isStream;
  #status = 0;
  #events = 0;
  #tail = Buffer.alloc(0);
  #bytes = 0;

  constructor(isStream, settle) {
    this.#isStream = isStream;
    this.#settle = settle;
  }

  onRequestStart(controller) {
    this.controller = controller;
  }

  onResponseStart(_controller, status) {
    this.#status = status;
  }

  onResponseData(_controller, bytes) {
    this.#bytes += bytes.length;
    if (!this.#isStream) return;
    // A mark may be cut in two by the network.
    if (this.#tail.at(-1) === NEWLINE && bytes[0] === NEWLINE) this.#events += 1;
    let from = bytes.indexOf(eventMark);
    for (; from >= 0; from = bytes.indexOf(eventMark, from + 2)) this.#events += 1;
    this.#tail = bytes.length < doneMark.length ? Buffer.concat([this.#tail, bytes]) : bytes;
    this.onEvent?.();
  }

  onResponseEnd() {
    this.#settle(this.#isWhole());
  }

  onResponseError(_controller, error) {
    this.#settle(error.message);
  }

  /** Null, or what is wrong. */
  #isWhole() {
    if (this.#status !== 200) return `status ${this.#status}`;
    if (!this.#isStream) return this.#bytes > 0 ? null : 'an empty answer';
    if (!this.#tail.subarray(-doneMark.length).equals(doneMark)) return 'a stream without its end';
    return this.#events >= EVENTS_PER_STREAM ? null : `a stream of ${this.#events} events`;
  }
}

function exchange(order) {
  return new Promise((resolve, reject) => {
    const reading = new Reading(order.stream, (problem) => {
      if (problem === null) resolve();
      else reject(new Error(problem));
    });
    pool.dispatch(requestOf(order), reading);
  });
}

function requestOf({ stream, headers }) {
  return { path, method: 'POST', headers, body: stream ? streamRequest : jsonRequest };
}

/** Until `count` answers or `ms` are over, whichever is asked for: how many came, and their median time in ms. */
async function runLoop(order) {
  const end = performance.now() + (order.ms ?? Number.POSITIVE_INFINITY);
  const times = [];
  let begun = 0;
  const client = async () => {
    if (order.stream) await delay(Math.random() * SPREAD_MS);
    while (performance.now() < end && begun < (order.count ?? Number.POSITIVE_INFINITY)) {
      begun += 1;
      const start = performance.now();
      await exchange(order);
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: order.connections }, client));
  times.sort((a, b) => a - b);
  return { count: times.length, p50: times[times.length >> 1] };
}

/** Opens streams; resolves when each has had its first event. */
async function hold(order) {
  for (let open = 0; open < order.count; open += OPENING) {
    await Promise.all(Array.from({ length: OPENING }, () => holdOne(order)));
  }
  return held.length;
}

function holdOne(order) {
  return new Promise((resolve, reject) => {
    const reading = new Reading(true, (problem) => reject(new Error(problem ?? 'a held stream ended')));
    reading.onEvent = resolve;
    pool.dispatch(requestOf(order), reading);
    held.push(reading);
  });
}

async function obey(order) {
  if (order.kind === 'release') {
    for (const reading of held) reading.controller?.abort(new Error('released'));
    held = [];
    return null;
  }
  await pool?.destroy();
  const connections = order.kind === 'hold' ? order.count : order.connections;
  pool = new Pool(order.url, { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  return order.kind === 'hold' ? hold(order) : runLoop(order);
}

serveParent(null, obey);
