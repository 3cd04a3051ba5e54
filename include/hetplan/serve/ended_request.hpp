// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What an instance says when a request has left it.

#include <cstdint>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan::serve {

/// A request by its number in the stream.
using request_number = std::uint32_t;

/// A request that has left an instance: computed, too late to begin, or taken along by a fault.
/// Source  semantics, section 11 (instances, faults).
struct ended_request {
  enum class how : std::uint8_t { done, timed_out, failed };
  request_number number = 0;
  how what = how::done;
  double at_s = 0;
  double share = 1;  ///< of a stream: the share of its frames that it got
};
using ended_requests = std::vector<ended_request>;

}  // namespace hetplan::serve
