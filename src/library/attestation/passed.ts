/**
 * Is told of each rule that a document passes, in the order of the numbers in `README.md`: the first rule of which
 * it is not told is the one that failed.
 *
 * @param found what the document has, where it says more than the rule. Not bounded, and not of trusted origin
 */
export type Passed = (rule: number, found?: string) => void;
