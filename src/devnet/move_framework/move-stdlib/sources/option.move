module std::option;

const EMustHold: u64 = 0x40001;

public struct Option<Element> has copy, drop, store {
    vec: vector<Element>,
}

public fun none<Element>(): Option<Element> {
    Option { vec: vector[] }
}

public fun some<Element>(e: Element): Option<Element> {
    Option { vec: vector[e] }
}

public fun is_none<Element>(t: &Option<Element>): bool {
    t.vec.is_empty()
}

public fun is_some<Element>(t: &Option<Element>): bool {
    !t.vec.is_empty()
}

public fun borrow<Element>(t: &Option<Element>): &Element {
    assert!(t.is_some(), EMustHold);
    &t.vec[0]
}

public fun destroy_some<Element>(t: Option<Element>): Element {
    assert!(t.is_some(), EMustHold);
    let Option { mut vec } = t;
    let element = vec.pop_back();
    vec.destroy_empty();
    element
}

public fun destroy_with_default<Element: drop>(t: Option<Element>, default: Element): Element {
    if (t.is_some()) t.destroy_some() else default
}

public macro fun do_ref<$T, $R: drop>($o: &Option<$T>, $f: |&$T| -> $R) {
    let option = $o;
    if (option.is_some()) {
        $f(option.borrow());
    }
}

public macro fun map_ref<$T, $U>($o: &Option<$T>, $f: |&$T| -> $U): Option<$U> {
    let option = $o;
    if (option.is_some()) some($f(option.borrow())) else none()
}

public macro fun is_some_and<$T>($o: &Option<$T>, $f: |&$T| -> bool): bool {
    let option = $o;
    option.is_some() && $f(option.borrow())
}
