// Vsock ports of the host, and the CIDs of enclaves: those below are the host's own.
#pragma once

namespace enclave {

inline constexpr unsigned kReportPort = 7778;
inline constexpr unsigned kEventPort = 7779;
inline constexpr unsigned kFirstCid = 4;
inline constexpr unsigned kLastCid = 0xfffffffe;

}  // namespace enclave
