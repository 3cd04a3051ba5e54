// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where local search begins: the door for starts, and the ones that ship.

#include <concepts>
#include <functional>
#include <utility>
#include <vector>

#include <hetplan/core/require_function.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/list_schedule.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/simulate/trace.hpp>

namespace HETPLAN_NAMESPACE::schedule {

/// A callable that makes rules for every message, of a graph and the run in which its transfers are left alone. Pure; candidates are
/// scheduled side by side, so it is called from several threads at once.
template <class S>
concept search_start = requires(const S& s, const cep_graph& cep, const trace& alone) {
  { s(cep, alone) } -> std::same_as<message_rules>;
};

template <class S>
consteval bool check_search_start() {
  static_assert(
      search_start<S>,
      "search_start needs: hetplan::schedule::message_rules operator()(const hetplan::schedule::cep_graph&, const hetplan::trace& "
      "alone) const, or to be a transfer_priority");
  return search_start<S>;
}

/// What list_schedule makes of a priority, whole transfers.
///
/// Complexity  that of urgency_sequence.   Throws  as it does.   Source  Dora, section 4.2.
template <transfer_priority Priority = critical_path_first>
struct listed_start {
  Priority priority = {};
  [[nodiscard]] message_rules operator()(const cep_graph& cep, const trace&) const {
    return rules_of_sequence(cep.messages(), urgency_sequence(cep, priority));
  }
};

/// First those that end first if they are left alone. Complexity O(n log n) in the messages. Source: ours.
struct order_of_ends {
  [[nodiscard]] message_rules operator()(const cep_graph& cep, const trace& alone) const;
};

/// One priority for all: they share. Source: ours.
struct all_equal {
  [[nodiscard]] message_rules operator()(const cep_graph& cep, const trace&) const { return {cep.messages(), {chunk_rule{}}}; }
};

/// Rules of an earlier schedule of the same messages. Source: ours.
struct given_rules {
  message_rules rules;
  [[nodiscard]] message_rules operator()(const cep_graph&, const trace&) const { return rules; }
};

/// Holds any start by value, a transfer_priority as its listed_start; what it answers is checked. Of an empty one:
/// invalid_input.
class any_search_start {
 public:
  template <class S>
    requires(!std::same_as<S, any_search_start>)
  any_search_start(S s) {
    if constexpr (transfer_priority<S>) {
      start_ = listed_start<S>{std::move(s)};
    } else {
      static_assert(check_search_start<S>());
      if constexpr (search_start<S>) start_ = std::move(s);
    }
    require_function(start_, "any_search_start", "a search start, such as all_equal{}");
  }

  /// Throws  invalid_model: see checked (schedule/cep_graph.hpp).
  [[nodiscard]] message_rules operator()(const cep_graph& cep, const trace& alone) const {
    return checked(start_(cep, alone), cep, "search start");
  }

 private:
  std::function<message_rules(const cep_graph&, const trace&)> start_;
};

/// critical_path_first, longest_tail_first, order_of_ends, earliest_first, smallest_first, all_equal.
[[nodiscard]] std::vector<any_search_start> usual_starts();

static_assert(check_search_start<listed_start<>>() && check_search_start<order_of_ends>() && check_search_start<all_equal>() &&
              check_search_start<given_rules>() && check_search_start<any_search_start>());

}  // namespace HETPLAN_NAMESPACE::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/search_start.ipp>
#endif
