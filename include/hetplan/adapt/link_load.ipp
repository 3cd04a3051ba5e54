// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/link_load.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>

#include <hetplan/tasks/expand.hpp>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE iteration_load load_of(const staged& s) {
  const tasks::task_graph g = tasks::expand(s);
  const std::size_t stages = s.plan.stages.size();
  iteration_load all;
  for (const phase what : {phase::forward, phase::backward_input}) {
    std::map<std::pair<std::size_t, device_id>, double> time_s;  // by stage and device
    for (const tasks::compute_task& t : g.computes) {
      const bool forward = t.what == phase::forward;
      if (t.what != phase::optimizer_step && forward == (what == phase::forward)) time_s[{t.stage.index(), t.device}] += t.duration_s;
    }
    std::vector<double> slowest_s(stages, 0);
    for (const auto& [at, each_s] : time_s) slowest_s[at.first] = std::max(slowest_s[at.first], each_s);
    (what == phase::forward ? all.forward_s : all.backward_s) = slowest_s;
    std::vector<int>& passes = what == phase::forward ? all.forwards : all.backwards;
    for (const stage_graph::node& n : s.graph.nodes) passes.push_back(n.passes(what));
  }

  struct message {
    double latency_s = 0;
    std::map<resource_id, double> work_bytes;
  };
  std::map<std::tuple<transfer_kind, stage_id, stage_id>, std::map<int, message>> links;
  for (const tasks::transfer& t : g.transfers) {
    if (t.kind != transfer_kind::forward && t.kind != transfer_kind::backward) continue;
    message& m = links[{t.kind, t.from_stage, t.to_stage}][t.microbatch];
    m.latency_s = std::max(m.latency_s, t.latency_s);
    for (const resource_use& u : g.routes[t.route].via) m.work_bytes[u.resource] += u.weight * t.volume_bytes;
  }
  for (const auto& [name, messages] : links) {
    const auto& [kind, from, to] = name;
    link_load l{kind, from, to, std::ssize(messages), 0, (kind == transfer_kind::forward ? all.forward_s : all.backward_s)[to.index()]};
    for (const auto& [pass, m] : messages) {
      double longest_s = 0;
      for (const auto& [r, work] : m.work_bytes) longest_s = std::max(longest_s, work / s.cluster.network()[r].capacity.value());
      l.comm_s += m.latency_s + longest_s;
    }
    all.links.push_back(l);
  }
  return all;
}

HETPLAN_INLINE void message_window::add(double comm_s, double comp_s, long long messages) {
  if (messages <= 0) return;
  last_.push_back({comm_s, comp_s, messages});
  held_ += messages;
  fresh_ = std::min(length_, fresh_ + std::min(messages, length_));
  while (held_ - last_.front().messages >= length_) {
    held_ -= last_.front().messages;
    last_.pop_front();
  }
}

HETPLAN_INLINE double message_window::ratio() const {
  double comm_s = 0, comp_s = 0;
  long long left = length_;
  for (auto it = last_.rbegin(); it != last_.rend() && left > 0; ++it) {
    const auto n = static_cast<double>(std::min(left, it->messages));
    comm_s += n * it->comm_s;
    comp_s += n * it->comp_s;
    left -= it->messages;
  }
  if (comm_s <= 0) return 0;
  return comp_s > 0 ? comm_s / comp_s : std::numeric_limits<double>::infinity();
}

}  // namespace HETPLAN_NAMESPACE::adapt
