import type { Command } from 'commander';
import { addCommand } from './command.ts';
import { print } from './output.ts';

async function makeEvidenceKey(path: string): Promise<void> {
  const { generateKeyPairSync } = await import('node:crypto');
  const { writeSecret } = await import('../adapters/system/evidence-files.ts');
  const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  await writeSecret(path, privateKey);
  print(publicKey);
}

export function addEvidenceKey(program: Command): void {
  addCommand(program, {
    name: 'evidence-key',
    summary: 'make a key that signs reports, and print its public half',
    details:
      'The private key goes to a new file that its owner alone can read; the public one is for whoever checks.',
    example: 'model-gateway evidence-key evidence.pem > evidence.pub.pem',
  })
    .argument('<file>', 'where the private key goes')
    .action(makeEvidenceKey);
}
