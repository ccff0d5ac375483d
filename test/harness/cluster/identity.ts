import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Groups decide about rights, so a token each is all the identity that is needed. */
const users = {
  admin: 'system:masters',
  'system:kube-controller-manager': '',
  'system:kube-scheduler': '',
  'system:kube-proxy': '',
  'system:node:node-0': 'system:nodes',
};

/** The path of each user's kubeconfig. */
export type Identity = Readonly<Record<keyof typeof users, string>>;

/** The API server makes it itself, for its own address. */
export const apiCertificate = (folder: string): string => join(folder, 'certificates', 'apiserver.crt');

/** Tokens, service-account key and one kubeconfig per user, in `folder`; returns the kubeconfigs' paths. */
export function writeIdentity(folder: string, server: string): Identity {
  mkdirSync(join(folder, 'certificates'));
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  writeFileSync(join(folder, 'account.key'), privateKey.export({ type: 'sec1', format: 'pem' }));
  writeFileSync(join(folder, 'account.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
  const rows: string[] = [];
  const paths: Record<string, string> = {};
  for (const [name, group] of Object.entries(users)) {
    const token = randomBytes(24).toString('hex');
    rows.push([token, name, name, ...(group === '' ? [] : [`"${group}"`])].join(','));
    const path = join(folder, `${name.replace(/^system:/, '').replace(':', '-')}.kubeconfig`);
    const config = kubeconfig(name, token, { server, 'certificate-authority': apiCertificate(folder) });
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    paths[name] = path;
  }
  writeFileSync(join(folder, 'tokens.csv'), `${rows.join('\n')}\n`, { mode: 0o600 });
  return paths as Identity;
}

function kubeconfig(name: string, token: string, cluster: Readonly<Record<string, string>>): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster }],
    users: [{ name, user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: name } }],
    'current-context': 'test',
  };
}
