/** SVG as text. */

type Attributes = Readonly<Record<string, string | number>>;

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => escapes[character] ?? character);
}

/** One element; `content` is XML already. Numbers are rounded to a tenth, which no eye can tell. */
export function element(name: string, attributes: Attributes, content = ''): string {
  const written = Object.entries(attributes).map(([key, value]) => {
    const text = typeof value === 'number' ? String(tenth(value)) : escapeXml(value);
    return ` ${key}="${text}"`;
  });
  return `<${name}${written.join('')}${content === '' ? '/>' : `>${content}</${name}>`}`;
}

export function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

/** A line of text; where it is wider than `fit` pixels, its middle is left out, since names differ at their ends. */
export function textLine(attributes: Attributes & { readonly fit?: number }, text: string): string {
  const { fit, ...rest } = attributes;
  const most = fit === undefined ? text.length : Math.max(3, Math.floor(fit / CHARACTER_WIDTH));
  const head = Math.floor((most - 1) / 2);
  const shown =
    text.length > most ? `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}` : text;
  return element('text', rest, escapeXml(shown));
}

/** Of the small font, on average, in pixels. */
export const CHARACTER_WIDTH = 6.2;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
