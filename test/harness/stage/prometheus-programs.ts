import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { unpackDebianPackages } from './debian-packages.ts';
import { hasProgram } from './programs.ts';
import { StageError } from './project.ts';

/** The server, and what its own page loads. */
const packages = [
  'prometheus',
  'fonts-glyphicons-halflings',
  'libjs-bootstrap4',
  'libjs-d3',
  'libjs-eonasdan-bootstrap-datetimepicker',
  'libjs-jquery',
  'libjs-jquery-hotkeys',
  'libjs-moment',
  'libjs-moment-timezone',
  'libjs-mustache',
  'libjs-popper.js',
  'libjs-rickshaw',
];

/** Prometheus and promtool: those of the Debian package, unpacked, or those on PATH. Throws StageError. */
export async function findPrometheus(): Promise<{ prometheus: string; promtool: string }> {
  try {
    const bin = join(await unpackDebianPackages('prometheus-with-page', packages), 'usr', 'bin');
    const programs = { prometheus: join(bin, 'prometheus'), promtool: join(bin, 'promtool') };
    for (const path of Object.values(programs))
      if (!existsSync(path)) throw new StageError(`The Debian package prometheus holds no ${path}.`);
    return programs;
  } catch (error) {
    if (!hasProgram('prometheus') || !hasProgram('promtool')) throw error;
    return { prometheus: 'prometheus', promtool: 'promtool' };
  }
}
