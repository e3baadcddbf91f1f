//! Prints the verdict of Sui's verifier on documents: for each line of standard input, of root (`aws` or `made`), time
//! in milliseconds since 1970 and document in hexadecimal, the code with which `load_nitro_attestation` aborts, or `-`.
//! The test that runs this copies the verifier's source, twice, each beside the root that it includes.

use std::io::{stdin, BufRead};

/// What the source takes from its own crate.
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

/// As Sui's native function maps the two steps to codes. The three flags are those of upgraded networks.
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
