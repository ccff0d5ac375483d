/**
 * The form in which e-mail addresses are unique: trimmed, Unicode-composed, without case. The address
 * itself is kept and echoed as given.
 */
export function foldEmail(email: string): string {
  return email.trim().normalize('NFC').toLowerCase();
}
