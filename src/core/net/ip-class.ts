import ipaddr from 'ipaddr.js';

/**
 * What an address is, after the IANA special-purpose registries (RFC 6890 and its updates). Everything that
 * is not plainly global unicast falls into a class of its own or into `reserved`, so that a range unknown
 * here is never taken for a public one.
 */
export const ipClasses = [
  'public',
  'loopback',
  /** RFC 1918 and RFC 4193. */
  'private',
  'link-local',
  /** Carrier-grade NAT, 100.64.0.0/10 (RFC 6598): not private, since the network belongs to somebody else. */
  'shared',
  /** Nothing one can open a connection to, or an alias of this host: 0.0.0.0/8, ::, multicast, broadcast. */
  'unroutable',
  'reserved',
] as const;
export type IpClass = (typeof ipClasses)[number];

type Ip = ipaddr.IPv4 | ipaddr.IPv6;

const classByRange: Readonly<Record<string, IpClass>> = {
  unicast: 'public',
  loopback: 'loopback',
  private: 'private',
  uniqueLocal: 'private',
  linkLocal: 'link-local',
  carrierGradeNat: 'shared',
  unspecified: 'unroutable',
  multicast: 'unroutable',
  broadcast: 'unroutable',
};

/** RFC 4291 2.4: all that has been given out as global unicast. */
const globalUnicastV6 = ipaddr.IPv6.parseCIDR('2000::/3');
/** The well-known NAT64 prefix (RFC 6052): DNS64 networks reach the public IPv4 internet through it. */
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** RFC 8215: NAT64 of a local operator, which may use any of the layouts of RFC 6052 2.2. */
const localNat64 = ipaddr.IPv6.parseCIDR('64:ff9b:1::/48');
const sixToFour = ipaddr.IPv6.parseCIDR('2002::/16');
const teredo = ipaddr.IPv6.parseCIDR('2001::/32');
/** ::/96 and ::ffff:0:0:0/96: forms that old stacks still translate. */
const embeddingPrefixes = [nat64, ipaddr.IPv6.parseCIDR('::/96'), ipaddr.IPv6.parseCIDR('::ffff:0:0:0/96')];

/**
 * Where clouds serve credentials to whoever can connect: AWS, Azure, Google and most others, ECS tasks,
 * EKS pod identity, Tencent, Alibaba, Azure's wire server, Oracle, OpenStack; their IPv6 twins below: Google,
 * OpenStack, Scaleway, Oracle, Linode, Alibaba.
 */
const metadataAddresses: ReadonlySet<string> = new Set([
  '169.254.169.254',
  '169.254.170.2',
  '169.254.170.23',
  '169.254.0.23',
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  'fd20:ce::254',
  'fe80::a9fe:a9fe',
  'fd00:42::42',
  'fd00:c1::a9fe:a9fe',
  'fd00:a9fe:a9fe::1',
  'fd00:100::100:200',
]);
/** AWS has its metadata, its credentials of pods and other services of an instance there. */
const awsServices = ipaddr.IPv6.parseCIDR('fd00:ec2::/32');

/** An IP literal without brackets, or null. IPv4 only as four decimals: the URL parser has settled the rest. */
function parseIp(text: string): Ip | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  const zone = text.indexOf('%');
  const bare = zone < 0 ? text : text.slice(0, zone);
  if (!bare.includes(':') || !ipaddr.IPv6.isValid(bare)) return null;
  const address = ipaddr.IPv6.parse(bare);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

function v4At(
  bytes: readonly number[],
  ...positions: readonly [number, number, number, number]
): ipaddr.IPv4 {
  return new ipaddr.IPv4(positions.map((position) => bytes[position] ?? 0));
}

/** IPv4 addresses that a translator or a tunnel might send this IPv6 address to. Empty for most. */
function embeddedV4(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const bytes = address.toByteArray();
  if (address.match(sixToFour)) return [v4At(bytes, 2, 3, 4, 5)];
  if (address.match(teredo)) {
    return [
      v4At(
        bytes.map((byte) => byte ^ 0xff),
        12,
        13,
        14,
        15,
      ),
      v4At(bytes, 4, 5, 6, 7),
    ];
  }
  if (address.match(localNat64)) {
    // RFC 6052 2.2: byte 8 is skipped, so each prefix length puts the four bytes elsewhere.
    return [
      v4At(bytes, 6, 7, 9, 10),
      v4At(bytes, 7, 9, 10, 11),
      v4At(bytes, 9, 10, 11, 12),
      v4At(bytes, 12, 13, 14, 15),
    ];
  }
  return embeddingPrefixes.some((prefix) => address.match(prefix)) ? [v4At(bytes, 12, 13, 14, 15)] : [];
}

function classOf(address: Ip): IpClass {
  const byRange = classByRange[address.range()] ?? 'reserved';
  if (address instanceof ipaddr.IPv4) return byRange;
  if (address.match(nat64)) {
    return embeddedV4(address).every((v4) => classOf(v4) === 'public') ? 'public' : 'reserved';
  }
  return byRange === 'public' && !address.match(globalUnicastV6) ? 'reserved' : byRange;
}

/**
 * Class of an IP literal (no brackets; a zone id is ignored), or null when the text is not one.
 * IPv4-mapped IPv6 is the IPv4 address it stands for. NAT64 is public when the embedded address is; every
 * other tunnel (6to4, Teredo, local NAT64) is `reserved`, whatever it embeds.
 */
export function classifyAddress(text: string): IpClass | null {
  const address = parseIp(text);
  return address === null ? null : classOf(address);
}

/** One spelling per address: RFC 5952, IPv4 for the mapped form, no zone. Null when the text is not one. */
export function canonicalAddress(text: string): string | null {
  return parseIp(text)?.toString() ?? null;
}

/**
 * Every address that a connection to this one may end at, each in its one spelling: itself, and what a
 * translation or tunnel prefix is wrapped around. Empty when the text is no address.
 */
export function reachedAddresses(text: string): string[] {
  const address = parseIp(text);
  if (address === null) return [];
  const inner = address instanceof ipaddr.IPv4 ? [] : embeddedV4(address);
  return [address.toString(), ...inner.map((v4) => v4.toString())];
}

/** True for a cloud metadata service, also when a translation or tunnel prefix is wrapped around it. */
export function isMetadataAddress(text: string): boolean {
  const address = parseIp(text);
  if (address instanceof ipaddr.IPv6 && address.match(awsServices)) return true;
  return reachedAddresses(text).some((reached) => metadataAddresses.has(reached));
}

/** A network in CIDR form. */
export type Cidr = readonly [Ip, number];

/** Reads `10.0.0.0/8`, `fd00::/8` or a single address; null when it is none of these. */
export function parseCidr(text: string): Cidr | null {
  const trimmed = text.trim();
  if (ipaddr.isValidCIDR(trimmed)) return ipaddr.parseCIDR(trimmed);
  const address = parseIp(trimmed);
  return address === null ? null : [address, address instanceof ipaddr.IPv4 ? 32 : 128];
}

/** True for a network that lies in a link-local range as a whole. */
export function isLinkLocalNetwork([network, prefixLength]: Cidr): boolean {
  return classOf(network) === 'link-local' && prefixLength >= (network.kind() === 'ipv4' ? 16 : 10);
}

export function isInCidr(text: string, [network, prefixLength]: Cidr): boolean {
  const address = parseIp(text);
  if (address === null || address.kind() !== network.kind()) return false;
  return address.match(network, prefixLength);
}
