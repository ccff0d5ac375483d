/** Every code block of the documents can be read in its language, and is run by a test or named as one that cannot be. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { blocksIn, blocksOf } from '../harness/clients/page-blocks.ts';
import { useFolder } from '../harness/servers/use-started.ts';
import { hasProgram } from '../harness/stage/programs.ts';
import { skipWithout } from '../harness/stage/tools.ts';
import { blockUses } from './block-uses.ts';
import { documents, exists, prose, readDocument } from './documents.ts';

/** Those of the site. */
const pages = [...documents(), 'k8s/README.md', 'load-tests/README.md'];

const folder = useFolder();

/** What a program says against a block; empty where it can read it. */
function complaint(program: string, args: readonly string[], input: string): string {
  const { status, stderr } = spawnSync(program, args, { input, encoding: 'utf8' });
  return status === 0 ? '' : stderr;
}

/** Plain JavaScript and TypeScript alike. */
function complaintOfNode(text: string): string {
  const file = join(folder.path, 'block.mjs');
  try {
    writeFileSync(file, stripTypeScriptTypes(text));
  } catch (error) {
    return String(error);
  }
  return complaint(process.execPath, ['--check', file], '');
}

/** A value, or one on each line, as logs are. */
function complaintOfJson(text: string): string {
  const isJson = (part: string): boolean => {
    try {
      JSON.parse(part);
      return true;
    } catch {
      return false;
    }
  };
  return isJson(text) || text.trim().split('\n').every(isJson) ? '' : 'no JSON';
}

const asPython = 'import ast, sys; ast.parse(sys.stdin.read())';

/** By language; blocks without one are drawings and formulas. */
const complaints: Readonly<Record<string, (text: string) => string>> = {
  '': () => '',
  sh: (text) => complaint('bash', ['-n'], text),
  ts: complaintOfNode,
  js: complaintOfNode,
  python: (text) => complaint(skipWithout('python3', 'it reads Python'), ['-c', asPython], text),
  json: complaintOfJson,
  yaml: (text) => String(parse(text) === undefined || ''),
};

test.each(pages)('every code block of %s can be read', (document) => {
  for (const { language, text } of blocksOf(document)) {
    // Lines that belong into files that are there: examples.test.ts compiles them in their places.
    if (document === 'CONTRIBUTING.md' && language === 'ts') continue;
    if (language === 'python' && !hasProgram('python3') && process.env['GW_REQUIRE_TOOLS'] !== '1') continue;
    expect(Object.keys(complaints), `${document}: ${text}`).toContain(language);
    expect(complaints[language]?.(text), `${document}: ${text}`).toBe('');
  }
});

test.each(pages)('every code block of %s is run by a test, or said to be one that cannot be', (document) => {
  const beginnings = (blockUses[document] ?? []).map(([beginning]) => beginning);
  const blocks = blocksOf(document).map(({ text }) => text.trimStart());
  expect(blocks.map((text, index) => text.slice(0, beginnings[index]?.length ?? 60))).toEqual(beginnings);
});

test.each(pages)('%s has no block that is only indented, which has no language', (document) => {
  expect(prose(readDocument(document))).not.toMatch(/\n\n {4}\S/);
});

const runners = Object.entries(blockUses).flatMap(([document, uses]) =>
  uses.flatMap(([, use]) => ('runBy' in use ? [[use.runBy, document] as const] : [])),
);

test.each([...new Map(runners.map((runner) => [runner.join(' '), runner])).values()])(
  '%s reads %s',
  (path, document) => {
    expect(exists(path)).toBe(true);
    expect(readDocument(path)).toContain(document);
  },
);

test('no document that is gone has blocks', () => {
  expect(Object.keys(blockUses).filter((document) => !pages.includes(document))).toEqual([]);
});

describe('a block that cannot be read is found', () => {
  test.each([
    ['sh', 'if true; then'],
    ['ts', 'const = 1;'],
    ['js', 'import { from "x"'],
    ['json', '{"a": }'],
  ])('in %s', (language, text) => {
    expect(complaints[language]?.(text)).not.toBe('');
  });
});

test('the configuration of Continue has the form that it asks for', () => {
  const model = z.strictObject({
    name: z.string(),
    provider: z.literal('openai'),
    model: z.string().regex(/^gw\/(cheap|balanced|premium)$/),
    apiBase: z.string().regex(/^http.*\/v1$/),
    apiKey: z.string(),
    roles: z.array(z.enum(['chat', 'edit', 'apply', 'autocomplete', 'embed', 'rerank', 'summarize'])),
    requestOptions: z.strictObject({ headers: z.record(z.string(), z.string()) }).optional(),
  });
  const config = z.strictObject({
    name: z.string(),
    version: z.string(),
    schema: z.literal('v1'),
    models: z.array(model).min(1),
  });
  const [text = ''] = blocksIn('docs/integrations/continue.md', 'yaml');
  expect(config.safeParse(parse(text)).error).toBeUndefined();
});
