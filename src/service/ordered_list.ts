/** The neighbours of an element in the list that it is in. */
export interface Listed<T extends Listed<T>> {
  list: OrderedList<T> | undefined;
  before: T | undefined;
  after: T | undefined;
}

/**
 * Elements in the order in which they were added; each is in one list at most. A `Set` would do the same, but
 * as requests come and go, V8 replaces its table all the time. A table in the old generation keeps its former
 * content, and the tables after it, until the next full collection. With a `Set`, most of the garbage
 * collector's time went to requests that had long been answered.
 */
export class OrderedList<T extends Listed<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#first;
  }

  /** Appends an element, and removes it from the list that it was in. */
  add(element: T): void {
    element.list?.delete(element);
    element.list = this;
    element.before = this.#last;
    if (this.#last) this.#last.after = element;
    else this.#first = element;
    this.#last = element;
    this.#size += 1;
  }

  has(element: T): boolean {
    return element.list === this;
  }

  /** @returns whether the element was in this list */
  delete(element: T): boolean {
    if (element.list !== this) return false;
    const { before, after } = element;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    element.list = element.before = element.after = undefined;
    this.#size -= 1;
    return true;
  }

  /** Iterates over the present elements, oldest first. The list may change meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    const elements: T[] = [];
    for (let element = this.#first; element; element = element.after) elements.push(element);
    return elements[Symbol.iterator]();
  }
}
