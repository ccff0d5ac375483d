/** The longest name of a model in characters, in tables and in requests: vendors' longest are a third of it. */
export const maxModelLength = 256;
