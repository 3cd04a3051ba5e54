// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The realised critical chain: which tasks and transfers made a run as long as it was.

#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/simulate/waits.hpp>

namespace hetplan {

/// A part [start_s, end_s) of the run that one task or transfer accounts for. The four parts below add up to its length.
struct critical_link {
  tasks::node_id node = no_node;
  double start_s = 0;  ///< the end of the link before it; 0 for the first
  double end_s = 0;
  wait_reason why = wait_reason::start_of_run;
  tasks::node_id because = no_node;  ///< the link before it; no_node for the first
  double held_s = 0;                 ///< until it could start: a release time
  double latency_s = 0;              ///< of a transfer's route
  double own_s = 0;                  ///< a task's duration; a transfer's volume at its route's peak rate
  double lost_s = 0;                 ///< a transfer: to others on its route; a task: to a slower device

  [[nodiscard]] double duration_s() const { return end_s - start_s; }
  friend bool operator==(const critical_link&, const critical_link&) = default;
};

/// Walks back from the node with the last end to time 0, always to what the node waited for last.
///
/// @param t    a trace of `g` on `net`; if it was stopped, the chain of what ended last.
/// @return     in time order; links touch, the first starts at 0, the last ends at the latency. Empty for an empty graph.
/// Units       seconds.  Complexity  that of waits.
/// Determinism ties: the smaller node.
/// Source      semantics, section 6: the rules by which tasks and transfers start, read backwards.
[[nodiscard]] std::vector<critical_link> critical_chain(const tasks::task_graph& g, const trace& t, const network& net);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/critical_chain.ipp>
#endif
