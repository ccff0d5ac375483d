import { readFileSync } from 'node:fs';
import { inProject, StageError } from './project.ts';

/** The default of NODE_IMAGE in this Dockerfile. Throws StageError when it has none, or more than one. */
export function baseImageOf(dockerfile: string): string {
  const [name, ...others] = [...dockerfile.matchAll(/^ARG NODE_IMAGE=(\S+)$/gm)].map(([, found]) => found);
  if (name === undefined || others.length > 0)
    throw new StageError('Dockerfile: needs one line "ARG NODE_IMAGE=name:tag", the image it builds on.');
  return name;
}

/**
 * The image ours is built on. Its name stands in the Dockerfile alone: a release looks up its digest, and a new tag
 * with the digest of another name would build on the other one without a word.
 */
export const baseImage = (): string => baseImageOf(readFileSync(inProject('Dockerfile'), 'utf8'));
