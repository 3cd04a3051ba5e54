// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What local search tries next: the door for moves, and the ones that ship.

#include <concepts>
#include <functional>
#include <utility>
#include <vector>

#include <hetplan/core/require_function.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/list_schedule.hpp>

namespace HETPLAN_NAMESPACE::schedule {

/// Where a run loses time.
struct contention {
  message_chunk urgent;  ///< on the critical chain, slowed by others
  message_chunk rival;   ///< under way at the same time, on one of its resources
};

/// A callable that makes a neighbour of rules; the same rules where it has none. It may cut messages. Pure; candidates are scheduled
/// side by side, so it is called from several threads at once.
template <class M>
concept search_move = requires(const M& m, const cep_graph& cep, message_rules rules, const contention& at) {
  { m(cep, std::move(rules), at) } -> std::same_as<message_rules>;
};

template <class M>
consteval bool check_search_move() {
  static_assert(search_move<M>,
                "search_move needs: hetplan::schedule::message_rules operator()(const hetplan::schedule::cep_graph&, "
                "hetplan::schedule::message_rules, const hetplan::schedule::contention&) const");
  return search_move<M>;
}

/// The urgent chunk goes just before its rival. Complexity O(chunks). Source: ours.
struct overtake_rival {
  [[nodiscard]] message_rules operator()(const cep_graph&, message_rules rules, const contention& at) const;
};
/// The rival goes just behind the urgent chunk. Complexity O(chunks). Source: ours.
struct hold_back_rival {
  [[nodiscard]] message_rules operator()(const cep_graph&, message_rules rules, const contention& at) const;
};
/// The urgent chunk takes its rival's priority: they share. Source: ours.
struct join_rival {
  [[nodiscard]] message_rules operator()(const cep_graph&, message_rules rules, const contention& at) const;
};
/// The rival takes the urgent chunk's priority: they share. Source: ours.
struct let_rival_join {
  [[nodiscard]] message_rules operator()(const cep_graph&, message_rules rules, const contention& at) const;
};

/// Holds any move by value; what it answers is checked. Of an empty one: invalid_input.
class any_search_move {
 public:
  template <class M>
    requires(!std::same_as<M, any_search_move>)
  any_search_move(M m) {
    static_assert(check_search_move<M>());
    if constexpr (search_move<M>) move_ = std::move(m);
    require_function(move_, "any_search_move", "a search move, such as overtake_rival{}");
  }

  /// Throws  invalid_model: see checked (schedule/cep_graph.hpp).
  [[nodiscard]] message_rules operator()(const cep_graph& cep, message_rules rules, const contention& at) const {
    return checked(move_(cep, std::move(rules), at), cep, "search move");
  }

 private:
  std::function<message_rules(const cep_graph&, message_rules, const contention&)> move_;
};

/// overtake_rival, hold_back_rival, join_rival, let_rival_join.
[[nodiscard]] std::vector<any_search_move> usual_moves();

static_assert(check_search_move<overtake_rival>() && check_search_move<hold_back_rival>() && check_search_move<join_rival>() &&
              check_search_move<let_rival_join>() && check_search_move<any_search_move>());

}  // namespace HETPLAN_NAMESPACE::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/search_move.ipp>
#endif
