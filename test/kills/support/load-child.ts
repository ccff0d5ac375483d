/** The other end of open-loop.ts: sends requests when they are due, whatever became of those before. */
import { Agent } from 'undici';
import type { User } from '../../harness/gateway/register.ts';
import { sendChat } from '../../harness/ledgers/fault-load.ts';
import type { LoadOrder, LoadReport, SentRecord } from './open-loop.ts';

/** Requests that may be open at once; one that is due beyond them is not sent, and counted. */
const maxOpen = 400;
const tickMs = 5;
const reportMs = 50;
/** Of a failure's body, for the failed assertion. */
const keptCharacters = 300;

function tell(report: LoadReport): void {
  process.send?.(report);
}

function run(order: LoadOrder): () => void {
  const agent = new Agent({ connections: 128, pipelining: 1, headersTimeout: 60_000, bodyTimeout: 60_000 });
  const users = order.users.map(({ id, key }) => ({ id, key }) as User);
  const done: SentRecord[] = [];
  const startedAtMs = performance.now();
  let [due, open, skipped, answered] = [0, 0, 0, 0];
  let isStopped = false;

  const send = async (index: number): Promise<void> => {
    open += 1;
    const stream = order.streamEvery > 0 && index % order.streamEvery === 0;
    const user = users[index % users.length] as User;
    const {
      id,
      status,
      whole,
      text,
      startedAtMs: sentAtMs,
      tookMs,
    } = await sendChat(order.url, user, { stream, agent });
    open -= 1;
    const isServed = status === 200 && whole;
    if (isServed) answered += 1;
    done.push({
      id,
      user: index % users.length,
      stream,
      status,
      whole,
      startedAtMs: sentAtMs,
      tookMs,
      text: isServed ? '' : text.slice(-keptCharacters),
    });
    if (isStopped && open === 0) finish();
  };
  const finish = (): void => {
    const seconds = (stoppedAtMs - startedAtMs) / 1000;
    tell({ kind: 'done', sent: done, seconds, skipped });
    void agent.close();
  };
  let stoppedAtMs = 0;
  const ticker = setInterval(() => {
    const wanted = Math.floor(((performance.now() - startedAtMs) / 1000) * order.perSecond);
    for (; due < wanted; due += 1) {
      if (open < maxOpen) void send(due);
      else skipped += 1;
    }
  }, tickMs);
  const reporter = setInterval(() => tell({ kind: 'progress', answered }), reportMs);
  return () => {
    clearInterval(ticker);
    clearInterval(reporter);
    isStopped = true;
    stoppedAtMs = performance.now();
    if (open === 0) finish();
  };
}

let stop: (() => void) | undefined;
process.on('message', (order: LoadOrder | 'stop') => {
  if (order === 'stop') stop?.();
  else stop = run(order);
});
process.on('disconnect', () => process.exit());
