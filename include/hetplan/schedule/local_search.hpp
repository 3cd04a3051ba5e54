// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Local search over the order and chunks of transfers, guided by the time that the critical chain loses to contention.

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/event_order.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/simulate/simulation.hpp>

namespace hetplan::schedule {

/// Start of the local search: a callable that returns rules for every message of a graph, given its run with uncontrolled transfers. The
/// search runs every start of `local_search_options::starts` and continues from the best.
///
/// * Every message has at least one chunk, and releases are finite; else `invalid_model`. An empty list of starts is `invalid_input`.
/// * A `transfer_priority` is also a start: its list schedule.
/// * Pure; candidates are scheduled in parallel, so several threads call it at once.
///
/// Ships: `listed_start` (by a `transfer_priority`), `order_of_ends` (by the ends of uncontrolled transfers), `all_equal` (all share),
/// `given_rules` (of an earlier schedule), `any_search_start` (chosen at run time). The default, `usual_starts()`, is four priorities,
/// `order_of_ends`, `all_equal`.
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

/// Rules of the list schedule by a priority, without cutting transfers.
///
/// Complexity, Throws  as urgency_sequence.   Source  Dora, section 4.2.
template <transfer_priority Priority = critical_path_first>
struct listed_start {
  Priority priority = {};
  [[nodiscard]] message_rules operator()(const cep_graph& cep, const trace&) const {
    return rules_of_sequence(cep.messages(), urgency_sequence(cep, priority));
  }
};

/// Messages by the end of their first transfer in the uncontrolled run. Complexity O(n log n) in the messages. Source: ours.
struct order_of_ends {
  [[nodiscard]] message_rules operator()(const cep_graph& cep, const trace& alone) const;
};

/// Equal priorities, so that all messages share bandwidth. Source: ours.
struct all_equal {
  [[nodiscard]] message_rules operator()(const cep_graph& cep, const trace&) const { return {cep.messages(), {chunk_rule{}}}; }
};

/// Rules of an earlier schedule of the same messages. Source: ours.
struct given_rules {
  message_rules rules;
  [[nodiscard]] message_rules operator()(const cep_graph&, const trace&) const { return rules; }
};

/// Type-erased start; a transfer_priority is held as its listed_start. Invalid rules throw invalid_model (see checked), an empty callable
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

  [[nodiscard]] message_rules operator()(const cep_graph& cep, const trace& alone) const {
    return checked(start_(cep, alone), cep, "search start");
  }

 private:
  std::function<message_rules(const cep_graph&, const trace&)> start_;
};

/// Returns critical_path_first, longest_tail_first, order_of_ends, earliest_first, smallest_first, all_equal.
[[nodiscard]] std::vector<any_search_start> usual_starts();

static_assert(check_search_start<listed_start<>>() && check_search_start<order_of_ends>() && check_search_start<all_equal>() &&
              check_search_start<given_rules>() && check_search_start<any_search_start>());

/// Contention on the critical chain that a move may resolve.
struct contention {
  message_chunk urgent;  ///< a chunk on the critical chain that lost time to others
  message_chunk rival;   ///< a chunk under way at the same time on a resource of the urgent one
};

/// Move of the local search: a callable that returns a neighbour of the given rules, or the same rules if there is none. Each step draws a
/// chunk of the critical chain that lost time to contention, one of its rivals, and a move of `local_search_options::moves`.
///
/// * A move may cut messages. Its rules are checked like those of a start. Unchanged order and releases cost a step but no simulation.
/// * In one step of eight the rival is cut first, if `most_chunks` allows. Without moves the best start is the answer.
/// * Pure; candidates are scheduled in parallel, so several threads call it at once.
///
/// Ships: `overtake_rival` and `hold_back_rival` (one chunk goes just before the other), `join_rival` and `let_rival_join` (both share),
/// `any_search_move` (chosen at run time). The default, `usual_moves()`, holds the first four.
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

/// Ranks the urgent chunk just before its rival. Complexity O(chunks). Source: ours.
struct overtake_rival {
  [[nodiscard]] message_rules operator()(const cep_graph&, message_rules rules, const contention& at) const;
};
/// Ranks the rival just behind the urgent chunk. Complexity O(chunks). Source: ours.
struct hold_back_rival {
  [[nodiscard]] message_rules operator()(const cep_graph&, message_rules rules, const contention& at) const;
};
/// Gives the urgent chunk its rival's priority, so that both share. Source: ours.
struct join_rival {
  [[nodiscard]] message_rules operator()(const cep_graph&, message_rules rules, const contention& at) const;
};
/// Gives the rival the urgent chunk's priority, so that both share. Source: ours.
struct let_rival_join {
  [[nodiscard]] message_rules operator()(const cep_graph&, message_rules rules, const contention& at) const;
};

/// Type-erased move. Invalid rules throw invalid_model (see checked), an empty callable invalid_input.
class any_search_move {
 public:
  template <class M>
    requires(!std::same_as<M, any_search_move>)
  any_search_move(M m) {
    static_assert(check_search_move<M>());
    if constexpr (search_move<M>) move_ = std::move(m);
    require_function(move_, "any_search_move", "a search move, such as overtake_rival{}");
  }

  [[nodiscard]] message_rules operator()(const cep_graph& cep, message_rules rules, const contention& at) const {
    return checked(move_(cep, std::move(rules), at), cep, "search move");
  }

 private:
  std::function<message_rules(const cep_graph&, message_rules, const contention&)> move_;
};

/// Returns overtake_rival, hold_back_rival, join_rival, let_rival_join.
[[nodiscard]] std::vector<any_search_move> usual_moves();

static_assert(check_search_move<overtake_rival>() && check_search_move<hold_back_rival>() && check_search_move<join_rival>() &&
              check_search_move<let_rival_join>() && check_search_move<any_search_move>());

struct local_search_options {
  long long steps = 300;        ///< limit on simulated runs
  long long transfers = 40000;  ///< approximate limit on transfers in all simulated runs; allows at least 8 steps
  std::uint64_t seed = 1;
  int most_chunks = 2;                                    ///< limit on the chunks that the search cuts a transfer into
  double tolerance = 0.03;                                ///< relative slowdown that a step may accept at first; falls to 0 with the steps
  std::optional<seconds> time_limit = {};                 ///< of wall-clock time; if it is reached, status is `stopped` and runs may differ
  std::vector<any_search_start> starts = usual_starts();  ///< at least one; the search continues from the best
  std::vector<any_search_move> moves = usual_moves();     ///< each step draws one; if empty, the best start is the answer
};

/// Observer event: the search has simulated one more schedule.
struct schedule_tried {
  long long steps = 0;
  seconds latency;  ///< of the best schedule so far
};

/// Returns the schedule of transfers with the earliest end that local search finds, from the best of several starts (see search_start,
/// search_move). A critical chain that loses no time to contention is a path of the graph, so the schedule is optimal.
///
/// @return      never slower than uncontrolled transfers, which are the answer if nothing is faster.
/// Complexity   options.steps simulations.   Determinism  fixed by the seed, unless a time limit is reached.
/// Throws       invalid_input (no start), invalid_model (rules of a start or move that do not fit the graph; see checked).
/// Source       Dora, section 4.2, which names no neighbourhood; this one is ours.
[[nodiscard]] network_schedule local_search(const cep_graph& cep, const local_search_options& options = {},
                                            const any_observer<schedule_tried>& observer = {});

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/local_search.ipp>
#endif
