// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Adds a plan's transfers to a task graph: their routes, and their chunks where the plan has rules.

#include <cstdint>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/tasks/task_graph.hpp>
#include <hetplan/tasks/transfer_rules.hpp>

namespace hetplan::tasks {

/// Sends transfers between the devices of a cluster as a plan says.
class transfer_sender {
 public:
  using handle = task_graph_builder::handle;

  transfer_sender(const plan& p, const cluster& c, task_graph_builder& out)
      : cluster_(c), rules_(p), out_(out), route_of_(c.size() * c.size(), no_route) {}

  [[nodiscard]] task_graph_builder& builder() { return out_; }

  /// Adds a transfer whose ends, kind, microbatch and volume are set, in chunks where the plan says so.
  ///
  /// @return  its first and last chunk; chunks follow one another, the latency is the first one's.
  /// Throws   missing_route if the cluster has no route for the pair.
  std::pair<handle, handle> send(transfer t) {
    t.route = route_between(t.from, t.to);
    t.latency_s = out_.route_at(t.route).latency.value();
    const auto chunks = rules_.find(t);
    if (chunks.empty()) {
      const handle whole = out_.add(t);
      return {whole, whole};
    }
    t.volume_bytes /= static_cast<double>(chunks.size());
    std::pair<handle, handle> ends;
    for (const transfer_rule* rule : chunks) {
      t.chunk = rule->chunk;
      t.priority = rule->priority;
      t.release_s = rule->release.value();
      const handle chunk = out_.add(t);
      if (rule->chunk == 0) {
        ends.first = chunk;
      } else {
        out_.depend(ends.second, chunk);
      }
      ends.second = chunk;
      t.latency_s = 0;
    }
    return ends;
  }

  /// Adds a transfer that is part of the work of both its devices: it starts and ends with the task that sends, and both tasks
  /// get longer by its latency and its bytes at the route's peak bandwidth.
  ///
  /// Throws   missing_route if the cluster has no route for the pair.
  /// Source   semantics, section 6, rule 4 (`block`).
  void carry(transfer t, handle producer, handle consumer) {
    t.route = route_between(t.from, t.to);
    const double alone_s =
        out_.route_at(t.route).latency.value() + t.volume_bytes / cluster_.network().peak_bandwidth(t.from, t.to).value();
    t.carrier = producer.index;
    out_.prolong(producer, alone_s);
    out_.prolong(consumer, alone_s);
    const handle carried = out_.add(t);
    out_.depend(producer, carried);
    out_.depend(carried, consumer);
  }

  /// Throws invalid_input if a rule of the plan named no transfer.
  void require_all_rules_used() const { rules_.require_all_used(cluster_); }

 private:
  static constexpr std::uint32_t no_route = ~std::uint32_t{0};

  std::uint32_t route_between(device_id from, device_id to) {
    std::uint32_t& known = route_of_[from.index() * cluster_.size() + to.index()];
    if (known != no_route) return known;
    const route* r = cluster_.network().find(from, to);
    if (r == nullptr) {
      throw missing_route("plan: needs a transfer from device \"" + cluster_[from].name + "\" to \"" + cluster_[to].name +
                          "\", but cluster \"" + cluster_.name() + "\" has no route for that pair");
    }
    return known = out_.add_route(*r);
  }

  const cluster& cluster_;
  transfer_rules rules_;
  task_graph_builder& out_;
  std::vector<std::uint32_t> route_of_;
};

}  // namespace hetplan::tasks
