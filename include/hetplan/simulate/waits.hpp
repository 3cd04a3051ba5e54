// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who waited for whom in a simulated run: the one place that says why something did not start earlier.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string_view>
#include <vector>

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
class waits {
 public:
  waits(const tasks::task_graph& g, const trace& t)
      : graph_(g),
        trace_(t),
        input_end_s_(g.size(), 0),
        last_input_(g.size(), no_node),
        before_(g.computes.size(), no_node),
        sent_by_(g.device_order.size()),
        received_by_(g.device_order.size()),
        carried_by_(resources_of(g)) {
    read_inputs();
    read_ports();
    for (const auto& order : g.device_order) {
      for (std::size_t i = 1; i < order.size(); ++i) before_[order[i]] = order[i - 1];
    }
  }

  [[nodiscard]] const interval& when(tasks::node_id n) const {
    return graph_.is_compute(n) ? trace_.computes[n] : trace_.transfers[n - graph_.computes.size()];
  }
  /// The predecessor that ended last, no_node where there is none.
  [[nodiscard]] tasks::node_id last_input(tasks::node_id n) const { return last_input_[n]; }
  /// When all predecessors had ended.
  [[nodiscard]] double inputs_s(tasks::node_id n) const { return input_end_s_[n]; }
  /// The task before it in its device's order, no_node for the first.
  [[nodiscard]] tasks::node_id before_on_device(tasks::node_id compute) const { return before_[compute]; }
  /// When its device had finished that task.
  [[nodiscard]] double device_free_s(tasks::node_id compute) const {
    return before_[compute] == no_node ? 0 : trace_.computes[before_[compute]].end_s;
  }

  /// What a compute task or transfer that has started waited for last.
  [[nodiscard]] wait of(tasks::node_id n) const {
    if (graph_.is_transfer(n) && graph_.transfer_at(n).blocks()) return of(graph_.transfer_at(n).carrier);
    wait w;
    if (last_input_[n] != no_node) w = {wait_reason::input, last_input_[n], input_end_s_[n]};
    if (graph_.is_compute(n)) {
      const double free_s = device_free_s(n);
      const bool later = free_s > w.since_s || (free_s == w.since_s && before_[n] < w.because);
      return before_[n] != no_node && later ? wait{wait_reason::device, before_[n], free_s} : w;
    }
    const double start_s = when(n).start_s, release_s = graph_.transfer_at(n).release_s;
    const double ready_s = std::max(w.since_s, release_s), instant_s = same_time * trace_.latency.value();
    if (start_s > ready_s + instant_s) {
      const bool ports = trace_.access == route_access::exclusive_ports, links = trace_.access == route_access::exclusive_links;
      const tasks::node_id holder = ports ? port_holder(n) : links ? link_holder(n) : no_node;
      if (holder != no_node) return {ports ? wait_reason::ports : wait_reason::links, holder, when(holder).end_s};
    }
    if (release_s > w.since_s + instant_s) w.why = wait_reason::release;
    return w;
  }

 private:
  static constexpr double same_time = 1e-9;  ///< of the latency: rounding

  void read_inputs() {
    std::vector<std::uint32_t> waiting = graph_.predecessors;
    std::vector<tasks::node_id> open;
    for (tasks::node_id n = 0; n < graph_.size(); ++n) {
      if (waiting[n] == 0) open.push_back(n);
    }
    while (!open.empty()) {
      const tasks::node_id n = open.back();
      open.pop_back();
      const bool barrier = !graph_.is_compute(n) && !graph_.is_transfer(n);
      const double end_s = barrier ? input_end_s_[n] : when(n).end_s;
      const bool carried = graph_.is_transfer(n) && graph_.transfer_at(n).blocks();
      const tasks::node_id who = barrier ? last_input_[n] : carried ? graph_.transfer_at(n).carrier : n;
      for (const tasks::node_id m : graph_.successors_of(n)) {
        if (who != no_node &&
            (last_input_[m] == no_node || end_s > input_end_s_[m] || (end_s == input_end_s_[m] && who < last_input_[m]))) {
          input_end_s_[m] = end_s;
          last_input_[m] = who;
        }
        if (--waiting[m] == 0) open.push_back(m);
      }
    }
  }

  [[nodiscard]] static std::size_t resources_of(const tasks::task_graph& g) {
    std::size_t count = 0;
    for (const route& r : g.routes) {
      for (const resource_use& u : r.via) count = std::max(count, u.resource.index() + 1);
    }
    return count;
  }

  /// The transfers at each port and resource, by (end, smaller node last).
  void read_ports() {
    const auto later = [&](std::uint32_t a, std::uint32_t b) {
      const double end_a = trace_.transfers[a].end_s, end_b = trace_.transfers[b].end_s;
      return end_a < end_b || (end_a == end_b && a > b);
    };
    std::vector<std::uint32_t> order(graph_.transfers.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), later);
    for (const std::uint32_t t : order) {
      if (trace_.transfers[t].end_s <= 0 || graph_.transfers[t].blocks()) continue;  // a stopped run's that never ended; part of a task
      sent_by_[graph_.transfers[t].from.index()].push_back(t);
      received_by_[graph_.transfers[t].to.index()].push_back(t);
      for (const resource_use& u : graph_.routes[graph_.transfers[t].route].via) carried_by_[u.resource.index()].push_back(t);
    }
  }

  [[nodiscard]] tasks::node_id port_holder(tasks::node_id n) const {
    const tasks::transfer& mine = graph_.transfer_at(n);
    return last_of({&sent_by_[mine.from.index()], &received_by_[mine.to.index()]}, when(n).start_s);
  }
  [[nodiscard]] tasks::node_id link_holder(tasks::node_id n) const {
    std::vector<const std::vector<std::uint32_t>*> links;
    for (const resource_use& u : graph_.routes[graph_.transfer_at(n).route].via) links.push_back(&carried_by_[u.resource.index()]);
    return last_of(links, when(n).start_s);
  }

  /// The transfer of these that ended last, just before one started then. It began earlier, so that whoever follows the waits
  /// always gets nearer to time 0.
  [[nodiscard]] tasks::node_id last_of(const std::vector<const std::vector<std::uint32_t>*>& held, double start_s) const {
    tasks::node_id last = no_node;
    for (const auto* port : held) {
      auto t =
          std::upper_bound(port->begin(), port->end(), start_s, [&](double at, std::uint32_t x) { return at < trace_.transfers[x].end_s; });
      while (t != port->begin() && trace_.transfers[*std::prev(t)].start_s >= start_s) --t;  // those take no time
      if (t == port->begin()) continue;
      const tasks::node_id found = graph_.node_of_transfer(*std::prev(t));
      const bool later = last == no_node || when(found).end_s > when(last).end_s || (when(found).end_s == when(last).end_s && found < last);
      if (later) last = found;
    }
    return last != no_node && start_s - when(last).end_s <= same_time * trace_.latency.value() ? last : no_node;
  }

  const tasks::task_graph& graph_;
  const trace& trace_;
  std::vector<double> input_end_s_;                                ///< by node
  std::vector<tasks::node_id> last_input_;                         ///< by node
  std::vector<tasks::node_id> before_;                             ///< by compute task
  std::vector<std::vector<std::uint32_t>> sent_by_, received_by_;  ///< by device
  std::vector<std::vector<std::uint32_t>> carried_by_;             ///< by resource
};

}  // namespace hetplan
