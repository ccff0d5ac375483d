/** Octets that mail systems carry at most: a path (RFC 5321 4.5.3.1.3) without its brackets. */
const maxAddressLength = 254;
/** RFC 5321 4.5.3.1.1. */
const maxLocalLength = 64;
/** RFC 1035 2.3.4. */
const maxLabelLength = 63;

/** RFC 5322 3.2.3. What only quotes make valid, and letters beyond ASCII, next to no mail system takes. */
const dotAtom = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/;
const hostLabel = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
/** Nothing that an address of the web gives a meaning of its own. */
const internationalName = /^[\p{L}\p{M}\p{N}.-]+$/u;

/** The name in ASCII, lower case (IDNA, RFC 5891, as browsers do it); '' for what is none. */
function asciiDomain(domain: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
  if (/^[\x00-\x7f]*$/.test(domain)) return domain.toLowerCase();
  if (!internationalName.test(domain)) return '';
  const address = `http://${domain}/`;
  return URL.canParse(address) ? new URL(address).hostname : '';
}

function isMailDomain(ascii: string): boolean {
  const labels = ascii.split('.');
  const last = labels.at(-1) ?? '';
  // Nobody owns a name without a dot, and one that ends in a number is an IP address.
  if (labels.length < 2 || !/[a-z]/.test(last)) return false;
  return labels.every((label) => label.length <= maxLabelLength && hostLabel.test(label));
}

interface Parts {
  readonly local: string;
  /** In ASCII. */
  readonly domain: string;
}

function partsOf(email: string): Parts {
  const address = email.trim().normalize('NFC');
  const at = address.lastIndexOf('@');
  return { local: address.slice(0, Math.max(0, at)), domain: asciiDomain(address.slice(at + 1)) };
}

/** It is echoed as given: ends of lines and the like, which count as white space, would reach operators' terminals. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** True for an address that mail can be sent to, spaces around it aside (RFC 5321, 5322; IDNA domains). */
export function isEmail(email: string): boolean {
  const { local, domain } = partsOf(email);
  return (
    !unprintable.test(email) &&
    local.length <= maxLocalLength &&
    local.length + 1 + domain.length <= maxAddressLength &&
    dotAtom.test(local) &&
    isMailDomain(domain)
  );
}

/**
 * The form in which e-mail addresses are unique: trimmed, without case, the domain in ASCII. The address itself is
 * kept and echoed as given.
 */
export function foldEmail(email: string): string {
  const { local, domain } = partsOf(email);
  return `${local.toLowerCase()}@${domain}`;
}
