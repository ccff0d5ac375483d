/** Digits of the ids of W3C Trace Context. */
export const traceIdDigits = 32;
export const spanIdDigits = 16;

/** The value of a hexadecimal digit of ASCII, whose letters stand 9 behind it in the low four bits. */
export const digitOf = (code: number): number => (code & 15) + (code >> 6) * 9;
