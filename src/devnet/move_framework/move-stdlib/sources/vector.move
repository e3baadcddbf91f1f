#[defines_primitive(vector)]
module std::vector;

public use fun std::string::utf8 as vector.to_string;

const EIndexOutOfBounds: u64 = 0x20000;

#[bytecode_instruction]
public native fun empty<Element>(): vector<Element>;

#[bytecode_instruction]
public native fun length<Element>(v: &vector<Element>): u64;

#[bytecode_instruction]
#[syntax(index)]
public native fun borrow<Element>(v: &vector<Element>, i: u64): &Element;

#[bytecode_instruction]
#[syntax(index)]
public native fun borrow_mut<Element>(v: &mut vector<Element>, i: u64): &mut Element;

#[bytecode_instruction]
public native fun push_back<Element>(v: &mut vector<Element>, e: Element);

#[bytecode_instruction]
public native fun pop_back<Element>(v: &mut vector<Element>): Element;

#[bytecode_instruction]
public native fun destroy_empty<Element>(v: vector<Element>);

#[bytecode_instruction]
public native fun swap<Element>(v: &mut vector<Element>, i: u64, j: u64);

public fun is_empty<Element>(v: &vector<Element>): bool {
    v.length() == 0
}

public fun append<Element>(lhs: &mut vector<Element>, mut other: vector<Element>) {
    other.reverse();
    while (!other.is_empty()) lhs.push_back(other.pop_back());
    other.destroy_empty();
}

public fun remove<Element>(v: &mut vector<Element>, mut i: u64): Element {
    assert!(i < v.length(), EIndexOutOfBounds);
    while (i + 1 < v.length()) {
        v.swap(i, i + 1);
        i = i + 1;
    };
    v.pop_back()
}

public fun contains<Element>(v: &vector<Element>, e: &Element): bool {
    let (is_contained, _) = v.index_of(e);
    is_contained
}

public fun index_of<Element>(v: &vector<Element>, e: &Element): (bool, u64) {
    let mut i = 0;
    while (i < v.length()) {
        if (&v[i] == e) return (true, i);
        i = i + 1;
    };
    (false, 0)
}

public macro fun do_ref<$T, $R: drop>($v: &vector<$T>, $f: |&$T| -> $R) {
    let v = $v;
    let mut i = 0;
    while (i < v.length()) {
        $f(&v[i]);
        i = i + 1;
    }
}

public fun reverse<Element>(v: &mut vector<Element>) {
    let length = v.length();
    let mut i = 0;
    while (i < length / 2) {
        v.swap(i, length - 1 - i);
        i = i + 1;
    }
}

public macro fun map<$T, $U>($v: vector<$T>, $f: |$T| -> $U): vector<$U> {
    let mut v = $v;
    let mut r = vector[];
    v.reverse();
    while (v.length() > 0) r.push_back($f(v.pop_back()));
    v.destroy_empty();
    r
}
