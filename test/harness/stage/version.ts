import { readFileSync } from 'node:fs';
import { inProject } from './project.ts';

/** The version of package.json, which all others follow. */
export const packageVersion: string = (
  JSON.parse(readFileSync(inProject('package.json'), 'utf8')) as { readonly version: string }
).version;

/** The image as the chart and k8s/ name it by default. */
export const imageName = `model-gateway:${packageVersion}`;
