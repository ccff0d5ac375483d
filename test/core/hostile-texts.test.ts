/** Texts of users and vendors: what it costs to look at one grows with its length, not with its square. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { registerKeySchema, registerUserSchema } from '../../src/core/account/account-requests.ts';
import { clientNetwork } from '../../src/core/net/client-network.ts';
import { KeyMask } from '../../src/core/secret/key-mask.ts';
import { redactReason } from '../../src/core/secret/redact.ts';
import { Secret } from '../../src/core/secret/secret.ts';
import { readErrorBody } from '../../src/providers/error-body.ts';
import { readRetryAfterMs } from '../../src/providers/retry-after.ts';
import { cpuMsOf } from '../harness/measure/cpu-time.ts';

/** Of the longer text. Half of it squared is a tenth of a second and more. */
const length = 20_000;
/** Less CPU than this for the longer text is no harm, whatever the ratio. */
const harmlessMs = 5;
/** What is linear takes twice as long for twice the text; what is quadratic four times. */
const mostGrowth = 3;

const repeated = ['a', '0', ' ', '\n', '.', '-', '/', ':', '"', '=', ';', '@', '_', 'sk-', 'a.', ': ', '; '];
const endings = ['', '\u0000', '"'];
const beginnings = [
  '',
  'a',
  'Bearer ',
  'sk-',
  ';charset',
  'data:',
  'input_value',
  'https://',
  '"obfuscation"',
];

/** Made once, and flat: joined anew for each expression, they would take most of the time. */
function textOf(begin: string, text: string, end: string, size: number): string {
  return Buffer.from(begin + text.repeat(size / text.length) + end).toString('latin1');
}

const hostile = beginnings.flatMap((begin) =>
  repeated.flatMap((text) =>
    endings.map((end) => ({
      name: JSON.stringify([begin, text, end]),
      long: textOf(begin, text, end, length),
      half: () => textOf(begin, text, end, length / 2),
    })),
  ),
);

/** The first hostile text on which `look` takes more than it may. Three tries: the machine has other work too. */
function slowText(look: (text: string) => unknown): string | undefined {
  const isSlow = ({ long, half }: (typeof hostile)[number]): boolean => {
    for (let tries = 0; tries < 3; tries += 1) {
      const longMs = cpuMsOf(() => look(long));
      if (longMs <= harmlessMs) return false;
      const short = half();
      if (longMs <= mostGrowth * cpuMsOf(() => look(short))) return false;
    }
    return true;
  };
  return hostile.find(isSlow)?.name;
}

/** Comments, strings and templates are told apart from expressions only when read in order, as here. */
const comment = String.raw`^#![^\n]*|\/\/[^\n]*|\/\*[^]*?\*\/`;
const quoted = String.raw`'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"`;
const template = String.raw`${'`'}(?:\\.|[^${'`'}\\])*${'`'}`;
const literal = String.raw`(?<=[=(,:[!|&?{>] ?|\n\s*|return )\/(?<source>(?:\\.|\[(?:\\.|[^\]\n\\])*\]|[^/[\n\\])+)\/(?<flags>[a-z]*)`;
const tokens = new RegExp(`${comment}|${quoted}|(?<template>${template})|${literal}`, 'g');

interface Found {
  readonly expressions: (readonly [name: string, expression: RegExp])[];
  /** Lines with a slash that is neither one of an expression nor a division, which the formatter puts between spaces. */
  readonly unread: string[];
}

/** The regular expressions in a file of ours, those within its templates too. */
function expressionsIn(path: string, code: string): Found {
  const expressions: (readonly [string, RegExp])[] = [];
  const rest = code.replace(tokens, (...match) => {
    const { source, flags = '', template: inner } = match.at(-1) as Record<string, string | undefined>;
    if (source !== undefined)
      expressions.push([`${path} /${source}/`, new RegExp(source, flags.replace(/[gy]/g, ''))]);
    for (const inserted of (inner ?? '').split('${').slice(1))
      expressions.push(...expressionsIn(path, inserted).expressions);
    return '';
  });
  const unread = rest.split('\n').filter((line) => /\/(?![ =])|(?<! )\//.test(line));
  return { expressions, unread: unread.map((line) => `${path}: ${line}`) };
}

/** `dev` and `demo` see their operator's text only. */
const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
  (path) => path.endsWith('.ts') && !/^(dev|demo)\//.test(path),
);
const found = files.map((path) => expressionsIn(path, readFileSync(`src/${path}`, 'utf8')));
const expressions = found.flatMap((one) => one.expressions);

test('every expression in the sources is found', () => {
  expect(found.flatMap(({ unread }) => unread)).toEqual([]);
  expect(expressions.length).toBeGreaterThan(60);
  expect(expressions.map(([name]) => name)).toContain('core/request/request-id.ts /^[A-Za-z0-9_-]{1,128}$/');
});

test.each([
  ['const a = /x/g;', 1],
  ['if (/x/.test(text) || /[/"]/.test(text)) return /z/;', 3],
  ["const url = 'http://x/y'; // and /this/ not", 0],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: code
  ['const text = `a/b ${text.replace(/c/g, "/")}`;', 1],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: code
  ['const text = `${path.replace(/b/g, "")} of ${path.replace(/\\{\\w+\\}/g, "x")}`;', 2],
  ['#!/usr/bin/env node', 0],
  ['half /= whole / 2;', 0],
])('in %j so many: %i', (code, count) => {
  const { expressions: inIt, unread } = expressionsIn('x.ts', code);
  expect([inIt.length, unread]).toEqual([count, []]);
});

test('an expression in a place that is not thought of is told', () => {
  expect(expressionsIn('x.ts', 'const a = b ~/x/;').unread).toHaveLength(1);
});

test('an expression of quadratic cost is told', () => {
  expect(slowText((text) => /^[ -~]*[!-~][ -~]*$/.test(text))).toBeDefined();
});

test.each(expressions)('%s', (_name, expression) => {
  expect(slowText((text) => expression.test(text))).toBeUndefined();
});

const key = { provider: 'self_hosted', api_key: 'a', base_url: 'https://a' };
const schema = (given: z.ZodType, fields: object, field: string) => (text: string) =>
  given.safeParse({ ...fields, [field]: text });

describe('what reads texts of users and vendors', () => {
  test.each<[string, (text: string) => unknown]>([
    ['email', schema(registerUserSchema, {}, 'email')],
    ['api_key', schema(registerKeySchema, key, 'api_key')],
    ['base_url', schema(registerKeySchema, key, 'base_url')],
    ['declared_region', schema(registerKeySchema, key, 'declared_region')],
    ['label', schema(registerKeySchema, key, 'label')],
    ['X-Forwarded-For', clientNetwork],
    ['the body of an error', (text) => readErrorBody(Buffer.from(text))],
    [
      'the message of an error',
      (text) => readErrorBody(Buffer.from(JSON.stringify({ error: { message: text } }))),
    ],
    ['Retry-After', (text) => readRetryAfterMs({ 'retry-after': text }, 0)],
    ['the reason of a failure', (text) => redactReason(new KeyMask(new Secret('sk-secret')).words(text))],
  ])('%s', (_name, look) => expect(slowText(look)).toBeUndefined());
});

test.each([
  '{"request":{"messages":[{"content":"my PIN is 12',
  '  [{"input":"my PIN',
  '[ ["my PIN',
  '[1, "my PIN',
  '[',
  '<html>my PIN',
])('an error that was cut is not quoted: %s', (text) => {
  expect(readErrorBody(Buffer.from(text)).message).toBe('');
});

test.each(['[error] no such model', 'no such model', '  [ERR-12] no such model'])(
  'a text is quoted: %s',
  (text) => {
    expect(readErrorBody(Buffer.from(text)).message).toBe(text.trim());
  },
);
