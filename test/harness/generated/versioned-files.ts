import { readFileSync } from 'node:fs';
import { inProject } from '../stage/project.ts';
import { packageVersion } from '../stage/version.ts';
import type { MadeFile } from './made-files.ts';

const version = String.raw`\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?`;
const image = 'model-gateway:';

/**
 * Files that name the version, which stands in package.json, and what stands before it in each. The renderings name it as
 * well; they are made from the chart (`npm run render:chart`).
 */
const places: Readonly<Record<string, readonly string[]>> = {
  'charts/model-gateway/Chart.yaml': ['version: ', 'appVersion: ', image],
  'k8s/README.md': [image],
  'k8s/base/kustomization.yaml': ['app.kubernetes.io/version: '],
  'k8s/overlays/eval/demo-model.yaml': [image],
  'k8s/overlays/production/kustomization.yaml': ['newTag: '],
  'k8s/overlays/sidecar-demo/assistant.yaml': [image],
  'k8s/overlays/sidecar-demo/gateway-sidecar/pod.yaml': [image],
  'k8s/overlays/sidecar-demo/report-job.yaml': [image],
};

/** Each of them with the version that it should name. */
export function versionedFiles(): MadeFile[] {
  return Object.entries(places).map(([path, marks]) => {
    const text = readFileSync(inProject(path), 'utf8');
    return { path, text: marks.reduce((changed, mark) => withVersion(path, changed, mark), text) };
  });
}

function withVersion(path: string, text: string, mark: string): string {
  const found = new RegExp(`(?<=^|[\\s])(${mark})${version}`, 'gm');
  const changed = text.replace(found, `$1${packageVersion}`);
  if (!found.test(text)) throw new Error(`${path} has no version after "${mark}".`);
  return changed;
}
