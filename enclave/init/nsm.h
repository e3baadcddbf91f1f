// The time that the NSM puts into its attestation documents.
#pragma once

#include <optional>
#include <span>

namespace enclave {

// Asks the NSM, open as `device`, for a document, and returns when it made it: milliseconds since the Unix epoch.
// Returns nothing without a usable answer. The driver answers one caller at a time and holds the others.
std::optional<long long> ask_nsm_time(int device);

// Returns the time in an answer of the NSM to a request for a document with this nonce, or nothing if the bytes are
// anything else: the driver may return the late answer to another request. The signature is not verified: inside the
// enclave, the device vouches for its answers.
std::optional<long long> document_time(std::span<const unsigned char> answer, std::span<const unsigned char> nonce);

}  // namespace enclave
