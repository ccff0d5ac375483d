import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { User } from '../gateway/register.ts';
import { addKey, registerWithKeys } from '../gateway/register.ts';
import { legacyName } from './stories.ts';
import type { DemoVendors } from './vendors.ts';

/** What demo load needs of a gateway: users, and tables that know the former name of the service. */

const USERS = 4;

/** The shipped tables with the surface from before the rename, and whatever else is to be added. */
export function demoTables(addition = ''): string {
  const shipped = join(import.meta.dirname, '../../../charts/model-gateway/files/tables.yaml');
  const legacy = `legacy: { name: ${legacyName}, sunset: '2999-01-01T00:00:00Z' }`;
  return `${readFileSync(shipped, 'utf8')}\n${legacy}\n${addition}\n`;
}

/** Users who hold a key for every provider, and one for a model server of their own. */
export async function registerUsers(url: string, vendors: DemoVendors): Promise<readonly User[]> {
  const users: User[] = [];
  while (users.length < USERS) {
    const user = await registerWithKeys(url);
    await addKey(user, {
      provider: 'self_hosted',
      api_key: 'not-needed',
      base_url: vendors.selfHosted.url,
      declared_region: 'local',
    });
    users.push(user);
  }
  return users;
}
