/** Writes GGUF version 3: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Just enough for one model. */

const magic = 'GGUF';
const version = 3;
/** The format's default for where tensor data may begin. */
const alignment = 32;
/** `ggml_type` F32. */
const f32Tensor = 0;

/** Type numbers of metadata values. */
const valueTypes = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;

type ScalarType = Exclude<keyof typeof valueTypes, 'array'>;

/** One metadata value with its wire type; a list is an array of that type. */
export interface Metadata {
  readonly type: ScalarType;
  readonly value: number | boolean | string | readonly (number | string)[];
}

export interface Tensor {
  readonly name: string;
  /** The fastest-running dimension first, as ggml counts. */
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** The bytes of a whole model file. */
export function gguf(metadata: Readonly<Record<string, Metadata>>, tensors: readonly Tensor[]): Buffer {
  const entries = Object.entries(metadata);
  const head: Buffer[] = [
    Buffer.from(magic),
    u32(version),
    u64(tensors.length),
    u64(entries.length),
    ...entries.flatMap(([key, value]) => [text(key), metadataValue(value)]),
  ];
  const data: Buffer[] = [];
  let offset = 0;
  for (const tensor of tensors) {
    head.push(text(tensor.name), u32(tensor.shape.length), ...tensor.shape.map(u64));
    head.push(u32(f32Tensor), u64(offset));
    const bytes = padded(Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength));
    data.push(bytes);
    offset += bytes.length;
  }
  return Buffer.concat([padded(Buffer.concat(head)), ...data]);
}

function metadataValue({ type, value }: Metadata): Buffer {
  if (!Array.isArray(value)) return Buffer.concat([u32(valueTypes[type]), scalar(type, value as string)]);
  const items = (value as readonly (number | string)[]).map((item) => scalar(type, item));
  return Buffer.concat([u32(valueTypes.array), u32(valueTypes[type]), u64(items.length), ...items]);
}

function scalar(type: ScalarType, value: number | boolean | string): Buffer {
  if (type === 'string') return text(String(value));
  if (type === 'bool') return Buffer.from([Number(value)]);
  const bytes = Buffer.alloc(4);
  if (type === 'f32') bytes.writeFloatLE(Number(value));
  else if (type === 'i32') bytes.writeInt32LE(Number(value));
  else bytes.writeUInt32LE(Number(value));
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Buffer {
  return scalar('u32', value);
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function padded(bytes: Buffer): Buffer {
  const missing = (alignment - (bytes.length % alignment)) % alignment;
  return missing === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(missing)]);
}
