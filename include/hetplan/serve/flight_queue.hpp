// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Requests on their way, in order of when they are there.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <hetplan/serve/ended_request.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// A request that comes to a handler, a downlink or a registered device at a time.
struct flight {
  enum class to : std::uint8_t { handler, downlink, device };
  double at_s;
  request_number number;
  to what;
  std::int32_t where;  ///< a server; or the instance on the device
  friend bool operator>(const flight& a, const flight& b) { return a.at_s != b.at_s ? a.at_s > b.at_s : a.number > b.number; }
};

/// By time; of one instant by the number of the request.
/// Complexity  O(log in flight) each.
/// Source  semantics, section 11 (what happens at one instant).
class flight_queue {
 public:
  [[nodiscard]] bool empty() const { return flights_.empty(); }
  /// When the next one is there; infinite where there is none.
  [[nodiscard]] double next_s() const { return empty() ? std::numeric_limits<double>::infinity() : flights_.front().at_s; }

  void push(const flight& f) {
    flights_.push_back(f);
    std::ranges::push_heap(flights_, std::greater());
  }
  /// Takes out the next one. Requires that there is one.
  [[nodiscard]] flight pop() {
    std::ranges::pop_heap(flights_, std::greater());
    const auto f = flights_.back();
    flights_.pop_back();
    return f;
  }

 private:
  std::vector<flight> flights_;  ///< a heap: the next one in front
};

}  // namespace HETPLAN_NAMESPACE::serve
