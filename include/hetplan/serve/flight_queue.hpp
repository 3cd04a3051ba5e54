// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Requests on their way, in order of when they are there.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/core/at_most.hpp>
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

/// By time; of one instant, which is that but for rounding, by the number of the request.
/// Complexity  O(log in flight) each, and for each of one instant.
/// Source  semantics, section 11 (what happens at one instant).
class flight_queue {
 public:
  /// @param span_s  what the tolerance is a part of.
  explicit flight_queue(double span_s) : span_s_(span_s) {}

  [[nodiscard]] bool empty() const { return flights_.empty(); }
  /// When the next one is there; infinite where there is none.
  [[nodiscard]] double next_s() const { return empty() ? std::numeric_limits<double>::infinity() : flights_.front().at_s; }

  void push(const flight& f) {
    flights_.push_back(f);
    std::ranges::push_heap(flights_, std::greater());
  }
  /// Takes out the next one. Requires that there is one.
  [[nodiscard]] flight pop() {
    flight first = take();
    if (empty() || !at_most(flights_.front().at_s, first.at_s, span_s_)) return first;
    const double instant_s = first.at_s;
    std::vector<flight> others;
    while (!empty() && at_most(flights_.front().at_s, instant_s, span_s_)) {
      others.push_back(take());
      if (others.back().number < first.number) std::swap(first, others.back());
    }
    for (const flight& f : others) push(f);
    return first;
  }

 private:
  [[nodiscard]] flight take() {
    std::ranges::pop_heap(flights_, std::greater());
    const auto f = flights_.back();
    flights_.pop_back();
    return f;
  }

  double span_s_;
  std::vector<flight> flights_;  ///< a heap: the next one in front
};

}  // namespace HETPLAN_NAMESPACE::serve
