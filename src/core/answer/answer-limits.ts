/** `n` is at most 128 at any vendor, and 10 here: more choices in one answer or stream are hostile. */
export const maxChoices = 128;

/** Calls in one answer or stream, of all choices together: more than any client's accumulator takes. */
export const maxToolCalls = 1024;
