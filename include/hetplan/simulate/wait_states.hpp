// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Wait states and critical chain of a simulated run: why tasks and transfers did not start earlier.

#include <cstdint>
#include <string_view>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

/// Reason why a task or transfer did not start earlier.
enum class wait_reason {
  start_of_run,  ///< it has no predecessor
  input,         ///< its last input ended: a producer, the arrival of a tensor, or the previous chunk
  device,        ///< its device was busy with the previous task in the device's order
  release,       ///< the schedule's release time of the transfer
  ports,         ///< exclusive network: another transfer held the sender's or the receiver's port
  links,         ///< per_link network: another transfer held a resource of the route
};

[[nodiscard]] constexpr std::string_view to_string(wait_reason r) {
  switch (r) {
    case wait_reason::start_of_run: return "start of run";
    case wait_reason::input: return "input";
    case wait_reason::device: return "device";
    case wait_reason::release: return "release";
    case wait_reason::ports: return "ports";
    case wait_reason::links: return "links";
  }
  return "?";
}

inline constexpr tasks::node_id no_node = ~tasks::node_id{0};

/// The last wait of a node. `since_s` is the end of `because`; then only the schedule (or a user's policy) held the node back.
struct wait {
  wait_reason why = wait_reason::start_of_run;
  tasks::node_id because = no_node;
  double since_s = 0;

  friend bool operator==(const wait&, const wait&) = default;
};

/// Wait states of a trace. A barrier takes no time and is replaced by the node that it waited for, a blocking transfer by the task that it
/// is part of. Graph and trace must outlive it. A stopped trace is read as far as it goes.
///
/// Complexity   O(nodes + dependencies), and O(log) per transfer.
/// Determinism  ties: the smaller node.
class wait_states {
 public:
  wait_states(const tasks::task_graph& g, const trace& t);
  wait_states(const tasks::task_graph&& the_graph_must_outlive_it, const trace&) = delete;
  wait_states(const tasks::task_graph&, const trace&& the_trace_must_outlive_it) = delete;

  [[nodiscard]] const interval& when(tasks::node_id n) const;
  /// Returns the predecessor that ended last; no_node if there is none.
  [[nodiscard]] tasks::node_id last_input(tasks::node_id n) const { return last_input_[n]; }
  /// Returns the time when all predecessors had ended.
  [[nodiscard]] double inputs_s(tasks::node_id n) const { return input_end_s_[n]; }
  /// Returns the previous task in the device's order; no_node for the first.
  [[nodiscard]] tasks::node_id before_on_device(tasks::node_id compute) const { return before_[compute]; }
  /// Returns the end of the previous task on the device.
  [[nodiscard]] double device_free_s(tasks::node_id compute) const;

  /// Returns what a started compute task or transfer waited for last.
  [[nodiscard]] wait of(tasks::node_id n) const;

 private:
  static constexpr double same_time = 1e-9;  ///< relative to the latency: rounding

  void read_inputs();

  [[nodiscard]] static std::size_t resources_of(const tasks::task_graph& g);

  /// Lists the transfers at each port and resource by their ends; at equal ends the smaller node comes last.
  void read_ports();

  [[nodiscard]] tasks::node_id port_holder(tasks::node_id n) const;
  [[nodiscard]] tasks::node_id link_holder(tasks::node_id n) const;

  /// Returns the transfer in these lists that ended last, just before `start_s`. It began earlier, so that chains of waits lead to time 0.
  [[nodiscard]] tasks::node_id last_of(const std::vector<const std::vector<std::uint32_t>*>& held, double start_s) const;

  const tasks::task_graph& graph_;
  const trace& trace_;
  std::vector<double> input_end_s_;                                ///< by node
  std::vector<tasks::node_id> last_input_;                         ///< by node
  std::vector<tasks::node_id> before_;                             ///< by compute task
  std::vector<std::vector<std::uint32_t>> sent_by_, received_by_;  ///< by device
  std::vector<std::vector<std::uint32_t>> carried_by_;             ///< by resource
};

/// Part [start_s, end_s) of the run due to one task or transfer. Its length is held_s + latency_s + own_s + lost_s.
struct critical_link {
  tasks::node_id node = no_node;
  double start_s = 0;  ///< end of the previous link; 0 for the first
  double end_s = 0;
  wait_reason why = wait_reason::start_of_run;
  tasks::node_id because = no_node;  ///< node of the previous link; no_node for the first
  double held_s = 0;                 ///< wait for its start, such as a release time
  double latency_s = 0;              ///< latency of a transfer's route
  double own_s = 0;                  ///< a task's duration; a transfer's volume at its route's peak rate
  double lost_s = 0;                 ///< a transfer: to contention; a task: to a lower speed of its device

  [[nodiscard]] double duration_s() const { return end_s - start_s; }
  friend bool operator==(const critical_link&, const critical_link&) = default;
};

/// Returns the critical chain: from the node with the last end back to time 0, always to what the node waited for last.
///
/// @param t    a trace of `g` on `net`; if it was stopped, the chain of what ended last.
/// @return     links in time order without gaps, from 0 to the latency. Empty for an empty graph.
/// Units       seconds.  Complexity  that of wait_states.   Determinism  ties: the smaller node.
/// Source      semantics, section 6: the rules by which tasks and transfers start, read backwards.
[[nodiscard]] std::vector<critical_link> critical_chain(const tasks::task_graph& g, const trace& t, const network& net);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/wait_states.ipp>
#endif
