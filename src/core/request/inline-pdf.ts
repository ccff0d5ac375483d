/** A document that stands in the request itself. */
export interface InlinePdf {
  /** Base64. */
  readonly data: string;
  readonly filename: string | null;
}

/** As OpenAI's `file_data` has it (OpenAI API reference: Chat Completions, read 2026-11-28). */
const pdfUri = 'data:application/pdf;base64,';

/** The PDF in a content part of the type `file`; null: it is another kind of file, or only the name of one. */
export function inlinePdf(part: Readonly<Record<string, unknown>>): InlinePdf | null {
  const file = part['file'];
  if (typeof file !== 'object' || file === null) return null;
  const { file_data: uri, filename } = file as { readonly file_data?: unknown; readonly filename?: unknown };
  if (typeof uri !== 'string' || uri.slice(0, pdfUri.length).toLowerCase() !== pdfUri) return null;
  const isNamed = typeof filename === 'string' && filename !== '';
  return { data: uri.slice(pdfUri.length), filename: isNamed ? filename : null };
}
