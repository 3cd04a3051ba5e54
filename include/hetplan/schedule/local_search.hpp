// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Local search on the order of transfers and on their chunks, led by what the critical chain loses to sharing.

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/list_schedule.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/simulate/trace.hpp>

namespace hetplan::schedule {

// Where local search begins: the door for starts, and the ones that ship.

/// Where local search begins: a callable that makes rules for every message, of a graph and the run in which its transfers are left
/// alone. The search runs every start of `local_search_options::starts` and begins at the best.
///
/// * The rules have a chunk at least for every message, and finite releases; else `invalid_model`. No start at all is `invalid_input`.
/// * A `transfer_priority` is a start, too: its list schedule.
/// * Pure; candidates are scheduled side by side, so it is called from several threads at once.
///
/// Ships: `listed_start` (by a `transfer_priority`), `order_of_ends` (as they end if left alone), `all_equal` (all share), `given_rules`
/// (an earlier schedule's), `any_search_start` (chosen at run time). `usual_starts()`, the default, is four priorities, `order_of_ends`
/// and `all_equal`.
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

// What local search tries next: the door for moves, and the ones that ship.

/// Where a run loses time.
struct contention {
  message_chunk urgent;  ///< on the critical chain, slowed by others
  message_chunk rival;   ///< under way at the same time, on one of its resources
};

/// What local search tries next: a callable that makes a neighbour of rules; the same rules where it has none. A step takes a chunk of
/// the critical chain that lost time to others, and one of those, its rival; a move of `local_search_options::moves` is drawn for the
/// step.
///
/// * It may cut messages. The rules fit the graph as a start's do. The same order with the same releases takes a step and no simulation.
/// * One step in eight cuts the rival first, where `most_chunks` allows it. Without moves the best start is the answer.
/// * Pure; candidates are scheduled side by side, so it is called from several threads at once.
///
/// Ships: `overtake_rival`, `hold_back_rival` (the one just before the other), `join_rival`, `let_rival_join` (they share): all four are
/// `usual_moves()`, the default; `any_search_move` (chosen at run time).
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

struct local_search_options {
  long long steps = 300;        ///< simulated runs, at most
  long long transfers = 40000;  ///< simulated in all runs together, about: large graphs get fewer steps, but 8
  std::uint64_t seed = 1;
  int most_chunks = 2;                     ///< per transfer, as far as local search cuts it
  double tolerance = 0.03;                 ///< first accepts a run so much slower; falls to 0 with the steps
  std::optional<seconds> time_limit = {};  ///< on the wall clock; reached, the answer is `stopped` and may differ from run to run
  std::vector<any_search_start> starts = usual_starts();  ///< run in turn, one at least; the search begins at the best
  std::vector<any_search_move> moves = usual_moves();     ///< each step draws one; none: the best start is the answer
};

/// For observers: the search has run one more schedule.
struct schedule_tried {
  long long steps = 0;
  seconds latency;  ///< of the best so far
};

/// Searches for the order of transfers with the earliest end, from the best of several starts.
///
/// A step takes a transfer of the critical chain that lost time to others, and one of those others, and draws a move for the two:
/// by default the one goes before the other, or they share. One step in eight cuts the other one first. A chain that loses nothing
/// is a path of the graph, so the schedule is optimal.
///
/// @return      never slower than transfers left alone: then that is the answer.
/// Complexity   options.steps simulations.   Determinism  the seed decides, but for a time limit.
/// Throws       invalid_input (no start), invalid_model (rules of a start or a move that do not fit the graph; see checked).
/// Source       Dora, section 4.2, which names no neighbourhood; this one is ours.
[[nodiscard]] network_schedule local_search(const cep_graph& cep, const local_search_options& options = {},
                                            const any_observer<schedule_tried>& observer = {});

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/local_search.ipp>
#endif
