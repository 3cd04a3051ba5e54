// SPDX-License-Identifier: BSL-1.0
#pragma once
// Latency and bandwidth between two machines that run `hetplan profile`, over one TCP connection.
//
// Both ends prove first that they have the key: a challenge each way (HMAC-SHA-256); what comes before is random
// numbers. What is sent afterwards is neither encrypted nor signed, its sizes are checked, and everything has to happen within the time.
// Then the end that connected measures: round trips of a byte, and transfers each way that last half a second.

#include <string>

namespace cli {

struct link_options {
  std::string key;
  double timeout_s = 60;  ///< to wait for the other end, and for all that follows
};

struct measured_link {
  double latency_s = 0;        ///< half of the median round trip
  double out_bytes_per_s = 0;  ///< from here to the other end
  double in_bytes_per_s = 0;
  std::string other;  ///< the text that the other end gave
};

/// Waits at PORT or HOST:PORT for one that has the key, and answers its measurements. Who has not is named and sent away.
///
/// @param own  text for the other end, at most 1 MB.
/// Throws      hetplan::invalid_input: an address that cannot be used, nobody in time, a connection that breaks, or sizes that cannot be.
[[nodiscard]] measured_link listen_for_link(const std::string& address, const link_options& o, const std::string& own);

/// Connects to HOST:PORT and measures.
///
/// Throws  as listen_for_link; invalid_input (the other end has another key).
[[nodiscard]] measured_link connect_link(const std::string& address, const link_options& o, const std::string& own);

}  // namespace cli
