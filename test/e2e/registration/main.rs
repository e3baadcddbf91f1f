//! Prints the verdict of Sui's verifier on documents. Each line of standard input has a root (`aws` or `made`), a time
//! in milliseconds since 1970, and a document in hexadecimal. For each line, the program prints the code with which
//! `load_nitro_attestation` aborts, or `-` if it does not. Before the build, the test copies the verifier's source
//! beside each of the two roots.

use std::io::{stdin, BufRead};

/// Types that the verifier's source imports from its own crate.
mod error {
    #[derive(Debug)]
    pub enum FastCryptoError {
        GeneralError(#[allow(dead_code)] String),
    }
    pub type FastCryptoResult<T> = Result<T, FastCryptoError>;
}

#[allow(dead_code)]
#[path = "../../../build/registration/aws/nitro_attestation.rs"]
mod aws;
#[allow(dead_code)]
#[path = "../../../build/registration/made/nitro_attestation.rs"]
mod made;

/// Maps an error of each step to its abort code, as Sui's native function does. The three flags are set as on upgraded
/// networks.
macro_rules! verdict {
    ($verifier:ident, $document:expr, $at:expr) => {
        match $verifier::parse_nitro_attestation($document, true, true, true) {
            Err(_) => "1",
            Ok((signature, message, payload)) => {
                match $verifier::verify_nitro_attestation(&signature, &message, &payload, $at) {
                    Err(_) => "2",
                    Ok(()) => "-",
                }
            }
        }
    };
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn main() {
    for line in stdin().lock().lines() {
        let line = line.unwrap();
        let [root, at, hex] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not three words: {line}");
        };
        let (at, document) = (at.parse().unwrap(), from_hex(hex));
        println!(
            "{}",
            match root {
                "aws" => verdict!(aws, &document, at),
                "made" => verdict!(made, &document, at),
                _ => panic!("no such root: {root}"),
            }
        );
    }
}
