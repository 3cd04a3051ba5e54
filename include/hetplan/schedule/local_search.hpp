// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Local search on the order of transfers and on their chunks, led by what the critical chain loses to sharing.

#include <cstdint>
#include <optional>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/network_schedule.hpp>
#include <hetplan/schedule/search_move.hpp>
#include <hetplan/schedule/search_start.hpp>

namespace HETPLAN_NAMESPACE::schedule {

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

}  // namespace HETPLAN_NAMESPACE::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/local_search.ipp>
#endif
