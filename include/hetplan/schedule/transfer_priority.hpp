// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a list scheduler prefers: the door for priorities, and the ones that ship.

#include <concepts>

#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::schedule {

/// A transfer's times on a network of its own.
struct transfer_times {
  double earliest_start_s = 0;  ///< no sooner can it start
  double alone_s = 0;           ///< latency and volume at its peak rate
  double tail_s = 0;            ///< what must follow its end: the longest path to the end of everything
};

template <class P>
concept rates_urgency = requires(const P& p, const tasks::transfer& t, const transfer_times& when) {
  { p.urgency(t, when) } -> std::same_as<double>;  // larger first; ties by number; pure
};
template <class P>
concept transfer_priority = rates_urgency<P>;

template <class P>
consteval bool check_transfer_priority() {
  static_assert(rates_urgency<P>,
                "transfer_priority needs: double urgency(const hetplan::tasks::transfer&, const hetplan::schedule::transfer_times&) const");
  return transfer_priority<P>;
}

/// The longest path from the transfer's start to the end. Source: Dora, section 4.2.
struct critical_path_first {
  [[nodiscard]] double urgency(const tasks::transfer&, const transfer_times& when) const { return when.alone_s + when.tail_s; }
};
/// The longest path from its end, as on one machine with pre-emption (Jackson's rule).
struct longest_tail_first {
  [[nodiscard]] double urgency(const tasks::transfer&, const transfer_times& when) const { return when.tail_s; }
};
/// The earliest possible start first, on a network of its own.
struct earliest_first {
  [[nodiscard]] double urgency(const tasks::transfer&, const transfer_times& when) const { return -when.earliest_start_s; }
};
/// The fewest bytes first.
struct smallest_first {
  [[nodiscard]] double urgency(const tasks::transfer& t, const transfer_times&) const { return -t.volume_bytes; }
};

static_assert(check_transfer_priority<critical_path_first>() && check_transfer_priority<longest_tail_first>() &&
              check_transfer_priority<earliest_first>() && check_transfer_priority<smallest_first>());

}  // namespace hetplan::schedule
