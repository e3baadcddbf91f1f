#[test_only]
module std::unit_test;

public native fun poison();

public macro fun assert_eq<$T: drop>($t1: $T, $t2: $T) {
    let t1 = $t1;
    let t2 = $t2;
    assert!(t1 == t2);
}
