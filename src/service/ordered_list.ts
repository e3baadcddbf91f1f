/** Links of an element: to its list, and to its neighbours in the list. */
export interface Listed<T extends Listed<T>> {
  list: OrderedList<T> | undefined;
  before: T | undefined;
  after: T | undefined;
}

/**
 * Elements in the order in which they were added. An element is in at most one list. A `Set` would do the
 * same, but as requests come and go, V8 replaces the table of a `Set` all the time. A replaced table in the
 * old generation keeps its content and the later tables alive until the next full garbage collection. With a
 * `Set`, most of the garbage collector's time went to requests that had long been answered.
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

  /** Appends an element, after removing it from its former list. */
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

  /** Removes an element. @returns whether it was in this list */
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

  /**
   * Iterates over the elements that the list has now, oldest first. The list may change during the iteration.
   */
  [Symbol.iterator](): Iterator<T> {
    const elements: T[] = [];
    for (let element = this.#first; element; element = element.after) elements.push(element);
    return elements[Symbol.iterator]();
  }
}
