import type { Readable, Writable } from 'node:stream';

/** What the browser tells by itself; https://chromedevtools.github.io/devtools-protocol/ has the methods. */
export interface BrowserEvent {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

interface Message extends Partial<BrowserEvent> {
  readonly id?: number;
  readonly sessionId?: string;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** A browser at the other end of `--remote-debugging-pipe`: JSON that ends with a zero byte, in both directions. */
export class Browser {
  readonly #out: Writable;
  readonly #waiting = new Map<number, Waiting>();
  readonly #heard = new Set<(event: BrowserEvent, sessionId: string | undefined) => void>();
  #rest = '';
  #lastId = 0;

  constructor(out: Writable, input: Readable) {
    this.#out = out;
    // One that has ended is told of by what waits.
    out.on('error', () => undefined);
    input.setEncoding('utf8').on('data', (text: string) => this.#take(text));
    input.once('close', () => {
      for (const one of this.#waiting.values()) one.reject(new Error('The browser has ended.'));
    });
  }

  async openTab(): Promise<Tab> {
    const { targetId } = (await this.call('Target.createTarget', { url: 'about:blank' })) as {
      readonly targetId: string;
    };
    const attached = await this.call('Target.attachToTarget', { targetId, flatten: true });
    return new Tab(this, (attached as { readonly sessionId: string }).sessionId);
  }

  /** Of the browser itself, or of the session of a tab. */
  call(method: string, params: object, sessionId?: string): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#out.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  hear(told: (event: BrowserEvent, sessionId: string | undefined) => void): void {
    this.#heard.add(told);
  }

  #take(text: string): void {
    const parts = `${this.#rest}${text}`.split('\0');
    this.#rest = parts.pop() ?? '';
    for (const part of parts) this.#handle(JSON.parse(part) as Message);
  }

  #handle({ id, method, params = {}, sessionId, result, error }: Message): void {
    if (id === undefined) {
      if (method !== undefined) for (const told of this.#heard) told({ method, params }, sessionId);
      return;
    }
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new Error(error.message));
  }
}

/** One tab of a browser. */
export class Tab {
  readonly #browser: Browser;
  readonly #sessionId: string;

  constructor(browser: Browser, sessionId: string) {
    this.#browser = browser;
    this.#sessionId = sessionId;
  }

  /** The result; rejects with the browser's own words, or when it has ended. */
  async call<T>(method: string, params: object = {}): Promise<T> {
    return (await this.#browser.call(method, params, this.#sessionId)) as T;
  }

  hear(told: (event: BrowserEvent) => void): void {
    this.#browser.hear((event, sessionId) => {
      if (sessionId === this.#sessionId) told(event);
    });
  }
}
