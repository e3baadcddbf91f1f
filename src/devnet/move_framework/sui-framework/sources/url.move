module sui::url;

use std::ascii::String;

public struct Url has copy, drop, store {
    url: String,
}

public fun new_unsafe(url: String): Url {
    Url { url }
}

public fun new_unsafe_from_bytes(bytes: vector<u8>): Url {
    Url { url: std::ascii::string(bytes) }
}

public fun inner_url(self: &Url): String {
    self.url
}
