/** The image that ours is built on has its name in the Dockerfile, and nowhere else. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { baseImage, baseImageOf } from '../harness/stage/base-image.ts';
import { inProject } from '../harness/stage/project.ts';

describe('the name of the base', () => {
  test('is the default of the Dockerfile’s argument', () => {
    const dockerfile = '# of node:1\nARG NODE_IMAGE=debian:13\nARG NODE_DIGEST=\nFROM base\nARG NODE_IMAGE\n';
    expect(baseImageOf(dockerfile)).toBe('debian:13');
  });

  test.each([
    ['without one', 'FROM debian:13\n'],
    ['with an empty one', 'ARG NODE_IMAGE=\n'],
    ['with two', 'ARG NODE_IMAGE=debian:12\nARG NODE_IMAGE=debian:13\n'],
  ])('is asked for in a Dockerfile %s', (_what, dockerfile) => {
    expect(() => baseImageOf(dockerfile)).toThrow('ARG NODE_IMAGE');
  });

  test('has a tag: a release looks up the digest of this very name', () => {
    expect(baseImage()).toMatch(/^[\w./-]+:[\w.-]+$/);
  });

  test('is in no script and no test: they read the Dockerfile', () => {
    const named = ['scripts', 'test'].flatMap((folder) =>
      readdirSync(inProject(folder), { recursive: true, encoding: 'utf8' })
        .map((path) => join(folder, path))
        .filter((path) => /\.m?[jt]s$/.test(path))
        .filter((path) => readFileSync(inProject(path), 'utf8').includes(baseImage())),
    );
    expect(named, 'use baseImage() of test/harness/stage/base-image.ts').toEqual([]);
  });

  test('is the one that SECURITY.md says', () => {
    const [, said] = /base image, `([^`]+)`/.exec(readFileSync(inProject('SECURITY.md'), 'utf8')) ?? [];
    expect(said, 'SECURITY.md: "What is in the base image" names it').toBe(baseImage());
  });
});
