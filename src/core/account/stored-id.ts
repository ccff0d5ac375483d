/** An id as it is stored and compared: who names one may spell it in capitals. */
export const storedId = (named: string): string => named.toLowerCase();
