/// The source of an image, as the holder of an `EnclaveCap` states it.
///
/// Nothing on chain checks or uses it: it tells people and programs where to find the sources, from which they can build
/// the image again and compare its registers.
module enclave::source;

use std::string::String;

// Clients tell errors apart by these codes, which never change, or by the names.

#[error(code = 1)]
const ESourceUrl: vector<u8> = b"The URL of a repository is 1 to 200 printable ASCII characters";
#[error(code = 2)]
const ECommitLength: vector<u8> = b"A commit is 20 bytes (SHA-1) or 32 bytes (SHA-256)";
#[error(code = 3)]
const EFolder: vector<u8> = b"An application's folder is 0 to 100 printable ASCII characters";
#[error(code = 4)]
const EFrameworkVersion: vector<u8> = b"A version of the framework is 1 to 50 printable ASCII characters";
#[error(code = 5)]
const EMeasurementsLength: vector<u8> = b"The digest of measurements.json is 32 bytes (SHA-256)";

const MAX_URL_BYTES: u64 = 200;
const MAX_FOLDER_BYTES: u64 = 100;
const MAX_VERSION_BYTES: u64 = 50;

/// A commit of a public repository, the application's folder in it (empty for the root), the framework's version, and
/// the SHA-256 of the `measurements.json` that the image's build wrote.
public struct Source has copy, drop, store {
    url: String,
    commit: vector<u8>,
    folder: String,
    framework_version: String,
    measurements_sha256: vector<u8>,
}

/// Returns a source for the calls that set registers. Aborts if a field has a wrong length or character.
public fun some(
    url: String,
    commit: vector<u8>,
    folder: String,
    framework_version: String,
    measurements_sha256: vector<u8>,
): Option<Source> {
    assert!(url.length() > 0 && url.is_printable(MAX_URL_BYTES), ESourceUrl);
    assert!(commit.length() == 20 || commit.length() == 32, ECommitLength);
    assert!(folder.is_printable(MAX_FOLDER_BYTES), EFolder);
    assert!(
        framework_version.length() > 0 && framework_version.is_printable(MAX_VERSION_BYTES),
        EFrameworkVersion,
    );
    assert!(measurements_sha256.length() == 32, EMeasurementsLength);
    option::some(Source { url, commit, folder, framework_version, measurements_sha256 })
}

/// Returns no source. Transactions need this function, since they can't make an `Option` of a struct themselves.
public fun none(): Option<Source> {
    option::none()
}

/// Returns the URL of the repository.
public fun url(source: &Source): &String {
    &source.url
}

/// Returns the commit's hash, 20 or 32 bytes.
public fun commit(source: &Source): &vector<u8> {
    &source.commit
}

/// Returns the application's folder in the repository; empty for the root.
public fun folder(source: &Source): &String {
    &source.folder
}

/// Returns the version of the framework with which the image was built.
public fun framework_version(source: &Source): &String {
    &source.framework_version
}

/// Returns the SHA-256 of `measurements.json`, 32 bytes.
public fun measurements_sha256(source: &Source): &vector<u8> {
    &source.measurements_sha256
}

use fun is_printable as String.is_printable;

/// Returns whether a text has at most this length, and only characters from space to tilde.
fun is_printable(text: &String, max_bytes: u64): bool {
    let mut is_printable = text.length() <= max_bytes;
    text.as_bytes().do_ref!(|byte| if (*byte < 0x20 || *byte > 0x7e) is_printable = false);
    is_printable
}
