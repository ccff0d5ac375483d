import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import type { Ended, Kind, Told } from './requests.ts';
import { endedOf, sendOne } from './requests.ts';

/** Rest of one client between two requests: the load beside it is what keeps the gateway busy. */
const restMs = 20;

/** Requests of single users beside the load, for the same ledgers. */
export interface Asking {
  ask(kind: Kind, key: string): Promise<Told>;
  /** Asks again and again, until the function that it returns is called, which resolves when the last has ended. */
  keepAsking(kind: Kind, key: string): () => Promise<void>;
  /** Ends the connections, which are memory of the gateway: for a look at it. */
  hangUp(): Promise<void>;
  /** Something that a client must never see. */
  wrong(what: string): void;
  readonly wrongs: readonly string[];
}

/** What has ended is added to `ended`. */
export function startAsking(url: string, ended: Ended[]): Asking {
  let dispatcher = new Agent({ connections: 16, pipelining: 1 });
  const wrongs: string[] = [];
  const ask = async (kind: Kind, key: string) => {
    const told = await sendOne({ url, key, kind, dispatcher });
    ended.push(endedOf(told));
    return told;
  };
  return {
    ask,
    keepAsking: (kind, key) => {
      let isOver = false;
      const asked = (async () => {
        while (!isOver) {
          await ask(kind, key);
          await pause(restMs);
        }
      })();
      return async () => {
        isOver = true;
        await asked;
      };
    },
    hangUp: async () => {
      const old = dispatcher;
      dispatcher = new Agent({ connections: 16, pipelining: 1 });
      await old.close();
    },
    wrong: (what) => void wrongs.push(what),
    wrongs,
  };
}
