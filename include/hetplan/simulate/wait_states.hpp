// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who waited for whom in a simulated run: the one place that says why something did not start earlier.

#include <cstdint>
#include <string_view>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/simulate/trace.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

/// Why a task or transfer did not start earlier.
enum class wait_reason {
  start_of_run,  ///< nothing came before it
  input,         ///< the last of what it needs ended: its producer, a tensor that arrived, the chunk before it
  device,        ///< its device was busy with the task before it in the device's order
  release,       ///< the schedule holds the transfer back until a time
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

/// No task and no transfer.
inline constexpr tasks::node_id no_node = ~tasks::node_id{0};

/// What a node waited for last. `since_s` is the end of `because`: from then on nobody but the schedule (or a policy
/// of the user) kept it from starting.
struct wait {
  wait_reason why = wait_reason::start_of_run;
  tasks::node_id because = no_node;
  double since_s = 0;

  friend bool operator==(const wait&, const wait&) = default;
};

/// Reads a trace against its task graph. Barriers take no time: whoever they waited for stands for them, and for transfers that
/// block the task that they are part of.
///
/// Refers to its arguments, which must outlive it. A stopped trace is read as far as it went.
/// Complexity   O(nodes + dependencies), and O(log) per transfer.
/// Determinism  ties: the smaller node.
class wait_states {
 public:
  wait_states(const tasks::task_graph& g, const trace& t);
  // A temporary is gone at the end of the line.
  wait_states(const tasks::task_graph&& the_graph_must_outlive_it, const trace&) = delete;
  wait_states(const tasks::task_graph&, const trace&& the_trace_must_outlive_it) = delete;

  [[nodiscard]] const interval& when(tasks::node_id n) const;
  /// The predecessor that ended last, no_node where there is none.
  [[nodiscard]] tasks::node_id last_input(tasks::node_id n) const { return last_input_[n]; }
  /// When all predecessors had ended.
  [[nodiscard]] double inputs_s(tasks::node_id n) const { return input_end_s_[n]; }
  /// The task before it in its device's order, no_node for the first.
  [[nodiscard]] tasks::node_id before_on_device(tasks::node_id compute) const { return before_[compute]; }
  /// When its device had finished that task.
  [[nodiscard]] double device_free_s(tasks::node_id compute) const;

  /// What a compute task or transfer that has started waited for last.
  [[nodiscard]] wait of(tasks::node_id n) const;

 private:
  static constexpr double same_time = 1e-9;  ///< of the latency: rounding

  void read_inputs();

  [[nodiscard]] static std::size_t resources_of(const tasks::task_graph& g);

  /// The transfers at each port and resource, by (end, smaller node last).
  void read_ports();

  [[nodiscard]] tasks::node_id port_holder(tasks::node_id n) const;
  [[nodiscard]] tasks::node_id link_holder(tasks::node_id n) const;

  /// The transfer of these that ended last, just before one started then. It began earlier, so that whoever follows the waits
  /// always gets nearer to time 0.
  [[nodiscard]] tasks::node_id last_of(const std::vector<const std::vector<std::uint32_t>*>& held, double start_s) const;

  const tasks::task_graph& graph_;
  const trace& trace_;
  std::vector<double> input_end_s_;                                ///< by node
  std::vector<tasks::node_id> last_input_;                         ///< by node
  std::vector<tasks::node_id> before_;                             ///< by compute task
  std::vector<std::vector<std::uint32_t>> sent_by_, received_by_;  ///< by device
  std::vector<std::vector<std::uint32_t>> carried_by_;             ///< by resource
};

// The realised critical chain: which tasks and transfers made a run as long as it was.

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
/// Units       seconds.  Complexity  that of wait_states.
/// Determinism ties: the smaller node.
/// Source      semantics, section 6: the rules by which tasks and transfers start, read backwards.
[[nodiscard]] std::vector<critical_link> critical_chain(const tasks::task_graph& g, const trace& t, const network& net);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/wait_states.ipp>
#endif
