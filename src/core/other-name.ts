/** What all names together are called that are not told apart: in labels, in sums, in reports. */
export const otherName = '_other';
