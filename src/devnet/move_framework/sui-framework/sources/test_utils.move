#[test_only]
module sui::test_utils;

public native fun create_one_time_witness<T: drop>(): T;
