import { hash } from 'node:crypto';
import type { YAMLMap } from 'yaml';
import { isScalar, parseDocument, visit } from 'yaml';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import { compileTables } from '../../core/tables/compile-tables.ts';
import type { RoutingTablesDocument } from '../../core/tables/routing-tables.ts';
import type { RoutingTables } from '../../core/tables/tables.ts';
import { validateTables } from '../../core/tables/validate-tables.ts';

/** The size of the largest ConfigMap: a longer document cannot have come from one. */
export const maxTablesBytes = 1024 * 1024;
/** Far more anchors than a hand-written table needs, far fewer than a document that explodes when expanded. */
const maxAliasCount = 100;
/** Problems named in a message; the rest are counted. */
const maxProblemsShown = 5;
/** Hex digits of the hash: enough to tell two versions apart on a log row. */
const hashLength = 16;

/** Where requests get their tables; the holder of the last good version. */
export interface TablesSource {
  /** Nothing changes them; a request keeps those it began with. */
  current(): RoutingTables;
  status(): TablesStatus;
  close(): void;
}

export interface TablesStatus {
  readonly generation: number;
  readonly hash: string;
  readonly loadedAtMs: number;
  readonly lastReloadOk: boolean;
  readonly lastProblem: string | null;
  /** Loads by how they ended; `ok` counts the first one and reloads of an equal document too. */
  readonly loads: Readonly<Record<'ok' | TablesFault['kind'], number>>;
}

export interface TablesFault {
  /** `unreadable`: there is no document. `invalid`: there is one, and it cannot be used. */
  readonly kind: 'unreadable' | 'invalid';
  /** There is no such file. */
  readonly isMissing?: boolean;
  /** One line per problem, each with its path in the document. */
  readonly message: string;
}

export type ReadTables =
  | { readonly ok: true; readonly document: RoutingTablesDocument; readonly hash: string }
  | { readonly ok: false; readonly fault: TablesFault };

const invalid = (message: string): ReadTables => ({ ok: false, fault: { kind: 'invalid', message } });

/** There is no document to be had. */
export const unreadableTables = (message: string): ReadTables => ({
  ok: false,
  fault: { kind: 'unreadable', message },
});

/** The first key that a map names twice. The parser's own check compares all pairs: minutes for 100,000 keys. */
function repeatedKey(map: YAMLMap): unknown {
  const seen = new Set<unknown>();
  for (const { key } of map.items) {
    const name = isScalar(key) ? key.value : key;
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

/** Throws an Error whose first line says what is wrong. */
function parseYaml(text: string): unknown {
  const document = parseDocument(text, { uniqueKeys: false, logLevel: 'error' });
  const [error] = document.errors;
  if (error !== undefined) throw error;
  visit(document, {
    Map(_key, map) {
      const repeated = repeatedKey(map);
      if (repeated !== undefined) throw new Error(`the key "${repeated}" is there twice`);
    },
  });
  return document.toJS({ maxAliasCount });
}

/**
 * The same with texts of its own. The parser's are pieces of the whole file, and so of two bytes per character where it
 * has one "…" in a comment: everything that is put together with a model's name then takes as many, which was a quarter
 * of the time between a request's parse and its row.
 */
function withOwnTexts(document: RoutingTablesDocument): RoutingTablesDocument {
  return JSON.parse(JSON.stringify(document)) as RoutingTablesDocument;
}

/** YAML or JSON text → a valid document and its hash, or the first problems. Never throws. */
export function readTables(text: string): ReadTables {
  if (Buffer.byteLength(text) > maxTablesBytes) return invalid(`larger than ${maxTablesBytes} bytes`);
  let value: unknown;
  try {
    value = parseYaml(text);
  } catch (error) {
    return invalid(`not YAML or JSON: ${(error as Error).message.split('\n')[0]}`);
  }
  const result = validateTables(value);
  if (result.ok) {
    const digest = hash('sha256', canonicalJson(result.document), 'hex').slice(0, hashLength);
    return { ok: true, document: withOwnTexts(result.document), hash: digest };
  }
  const lines = result.problems.slice(0, maxProblemsShown).map(({ path, message }) => `${path}: ${message}`);
  const rest = result.problems.length - lines.length;
  return invalid([...lines, ...(rest > 0 ? [`and ${rest} more`] : [])].join('\n'));
}

/** The first document of the process cannot be used: the start stops with this message. */
export class TablesError extends Error {}

export interface TablesListeners {
  /** After a different document was taken into use; not for the first one. */
  readonly onReload?: (tables: RoutingTables) => void;
  /** After a fault the document can be used, and is the one that is in use. */
  readonly onRecovered?: () => void;
  /** Once per distinct fault, until a good document came. */
  readonly onProblem?: (problem: TablesFault) => void;
  /** A listener threw, or following the source did: a bug of ours. The tables stay in use and are followed. */
  readonly onBug?: (cause: unknown) => void;
}

/** Keeps the last good tables, wherever the documents come from, and says once what is wrong with a new one. */
export class LastGoodTables {
  readonly #listeners: TablesListeners;
  readonly #wallMs: () => number;
  readonly #loads = { ok: 1, invalid: 0, unreadable: 0 };
  #tables: RoutingTables;
  #loadedAtMs: number;
  #problem: TablesFault | null = null;

  /** Throws TablesError when the first document is bad. */
  constructor(first: ReadTables, listeners: TablesListeners, wallMs: () => number) {
    if (!first.ok) throw new TablesError(first.fault.message);
    this.#listeners = listeners;
    this.#wallMs = wallMs;
    this.#tables = compileTables(first.document, first.hash, 1);
    this.#loadedAtMs = wallMs();
  }

  current(): RoutingTables {
    return this.#tables;
  }

  /** Takes a good document into use, whole; notes a bad one and keeps what there was. Never throws. */
  offer(read: ReadTables): void {
    try {
      this.#take(read);
    } catch (cause) {
      this.#listeners.onBug?.(cause);
    }
  }

  #take(read: ReadTables): void {
    if (!read.ok) {
      this.#loads[read.fault.kind] += 1;
      const known = this.#problem?.message === read.fault.message;
      this.#problem = read.fault;
      if (!known) this.#listeners.onProblem?.(read.fault);
      return;
    }
    this.#loads.ok += 1;
    const wasFaulty = this.#problem !== null;
    this.#problem = null;
    if (read.hash === this.#tables.hash) {
      if (wasFaulty) this.#listeners.onRecovered?.();
      return;
    }
    this.#tables = compileTables(read.document, read.hash, this.#tables.generation + 1);
    this.#loadedAtMs = this.#wallMs();
    this.#listeners.onReload?.(this.#tables);
  }

  status(): TablesStatus {
    return {
      generation: this.#tables.generation,
      hash: this.#tables.hash,
      loadedAtMs: this.#loadedAtMs,
      lastReloadOk: this.#problem === null,
      lastProblem: this.#problem?.message ?? null,
      loads: { ...this.#loads },
    };
  }
}
