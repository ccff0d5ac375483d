import { readdirSync } from 'node:fs';
import { sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { patient } from '../measure/crowding.ts';
import { isStopped } from '../stage/children.ts';
import type { BrowserEvent, Tab } from './dev-tools.ts';

/** A desk and a telephone, in CSS pixels. */
const sizes = [
  { width: 1280, height: 800, mobile: false },
  { width: 390, height: 844, mobile: true },
] as const;

type Size = (typeof sizes)[number];

/** Against hanging only. */
const pageLimitMs = 20_000;

/** Every page of a built site as a path, apart from the one of missing pages. */
export function pathsOf(site: string): string[] {
  return readdirSync(site, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.html') && path !== '404.html')
    .map(
      (path) =>
        `/${path
          .split(sep)
          .join('/')
          .replace(/\.html$/, '')
          .replace(/(^|\/)index$/, '$1')}`,
    )
    .sort();
}

/** What is wrong with the pages at `url`, a line each that names page and width. */
export async function lookAtPages(tab: Tab, url: string, paths: readonly string[]): Promise<string[]> {
  const view = new View(tab);
  await view.begin();
  const found: string[] = [];
  for (const size of sizes) {
    await view.resize(size);
    for (const path of paths) {
      if (isStopped()) return found;
      const problems = await view.look(`${url}${path}`, size);
      found.push(...problems.map((problem) => `${path} at ${size.width} pixels: ${problem}`));
    }
  }
  return found;
}

/** Of what is heard on the console and beside it, the errors. */
function errorOf({ method, params }: BrowserEvent): string | null {
  if (method === 'Runtime.exceptionThrown') {
    const { text, exception } = params['exceptionDetails'] as {
      readonly text: string;
      readonly exception?: { readonly description?: string };
    };
    return exception?.description ?? text;
  }
  if (method === 'Runtime.consoleAPICalled' && params['type'] === 'error')
    return JSON.stringify(params['args']);
  if (method !== 'Log.entryAdded') return null;
  const { level, text, url } = params['entry'] as Readonly<Record<'level' | 'text' | 'url', string>>;
  return level === 'error' ? `${text} (${url})` : null;
}

class View {
  readonly #tab: Tab;
  #errors: string[] = [];
  #onLoad: () => void = () => undefined;

  constructor(tab: Tab) {
    this.#tab = tab;
    tab.hear((event) => {
      const error = errorOf(event);
      if (error !== null) this.#errors.push(`on the console: ${error}`);
      if (event.method === 'Page.loadEventFired') this.#onLoad();
    });
  }

  async begin(): Promise<void> {
    for (const domain of ['Page', 'Runtime', 'Log']) await this.#tab.call(`${domain}.enable`);
  }

  async resize(size: Size): Promise<void> {
    await this.#tab.call('Emulation.setDeviceMetricsOverride', { ...size, deviceScaleFactor: 1 });
  }

  /** What is wrong with a page, by itself and by what it said on the console. */
  async look(url: string, size: Size): Promise<string[]> {
    this.#errors = [];
    const loaded = new Promise<void>((resolve) => {
      this.#onLoad = resolve;
    });
    await this.#tab.call('Page.navigate', { url });
    const isLoaded = await Promise.race([
      loaded.then(() => true),
      delay(patient(pageLimitMs), false, { ref: false }),
    ]);
    if (!isLoaded) return ['it was not loaded in time'];
    const expression = `(${inPage})(${size.mobile}, ${patient(pageLimitMs)})`;
    const { result, exceptionDetails } = await this.#tab.call<{
      readonly result: { readonly value?: readonly string[] };
      readonly exceptionDetails?: { readonly text: string };
    }>('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    return [...(result.value ?? [`it could not be looked at: ${exceptionDetails?.text}`]), ...this.#errors];
  }
}

/** Runs in the page: resolves with what is wrong there. A person waits for the program of the page, too. */
const inPage = `async (isNarrow, limitMs) => {
  const endMs = performance.now() + limitMs;
  const until = async (holds) => {
    while (!holds()) {
      if (performance.now() > endMs) return false;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return true;
  };
  const isVisible = (element) => {
    if (element === null) return false;
    const { width, height, left, right } = element.getBoundingClientRect();
    const isInside = width > 0 && height > 0 && right > 0 && left < innerWidth;
    return isInside && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const problems = [];
  if (!(await until(() => document.querySelector('#app')?.__vue_app__ !== undefined))) return ['its program does not start'];
  await document.fonts.ready;
  if (!isVisible(document.querySelector('h1'))) problems.push('no heading is to be seen');
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) {
    const beyond = [...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > clientWidth + 1);
    const widest = beyond.find((one) => one.scrollWidth > clientWidth) ?? beyond.at(-1);
    problems.push('it scrolls sideways, ' + scrollWidth + ' of ' + clientWidth + ' pixels: ' + (widest?.textContent ?? '').slice(0, 60));
  }
  const button = document.querySelector('.VPLocalNav .menu');
  if (isNarrow && !isVisible(button)) problems.push('the button of the menu is not to be seen');
  if (isNarrow) button?.click();
  const entries = () => [...document.querySelectorAll('.VPSidebar a')].filter(isVisible);
  if (!(await until(() => entries().length > 10))) problems.push('the menu cannot be reached');
  return problems;
}`;
