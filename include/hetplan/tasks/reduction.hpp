// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Gradient reduction at the end of an iteration: rings inside stages, then rings or a server across them.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <hetplan/cluster/exchange.hpp>
#include <hetplan/plan/stage_cost.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/transfer_sender.hpp>

namespace hetplan::tasks {

namespace detail {

class reducer {
 public:
  using handle = task_graph_builder::handle;
  /// A device that takes part, and the stage that it stands for.
  struct member {
    device_id device;
    stage_id stage;
  };

  reducer(const plan& p, const stage_graph& stages, transfer_sender& sender)
      : p_(p), stages_(stages), sender_(sender), out_(sender.builder()) {}

  /// n transfers from member i to i + 1 (cyclic), each a ring_share of the bytes; the barrier that ends them.
  handle ring(const std::vector<member>& members, double weight_bytes, handle start) {
    const handle end = out_.add_barrier();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto [first, last] = send(members[i], members[(i + 1) % members.size()], ring_share(members.size()) * weight_bytes);
      out_.depend(start, first);
      out_.depend(last, end);
    }
    return end;
  }

  /// Every member to the server, and when it has all, back to every member; its own copy costs nothing.
  handle through_server(const std::vector<member>& members, double weight_bytes, handle start) {
    const handle gathered = out_.add_barrier(), end = out_.add_barrier();
    out_.depend(start, gathered);
    out_.depend(gathered, end);
    for (const member& m : members) {
      if (m.device == *p_.parameter_server) continue;
      const member server{*p_.parameter_server, m.stage};
      const auto [up_first, up_last] = send(m, server, weight_bytes);
      out_.depend(start, up_first);
      out_.depend(up_last, gathered);
      const auto [down_first, down_last] = send(server, m, weight_bytes);
      out_.depend(gathered, down_first);
      out_.depend(down_last, end);
    }
    return end;
  }

 private:
  std::pair<handle, handle> send(const member& from, const member& to, double volume_bytes) {
    return sender_.send({.kind = transfer_kind::sync, .from = from.device, .to = to.device, .from_stage = from.stage,
                         .to_stage = to.stage, .microbatch = stages_[from.stage].microbatches - 1, .volume_bytes = volume_bytes});
  }

  const plan& p_;
  const stage_graph& stages_;
  transfer_sender& sender_;
  task_graph_builder& out_;
};

}  // namespace detail

/// Adds the reductions of an iteration.
///
/// A stage with several devices reduces its trainable bytes in a ring. Then each set of stages that share
/// tensors (a weight group, or the same layers in several pipelines) reduces them among its distinct first
/// devices, in a ring or through the plan's parameter server; with one distinct device there is nothing to do.
///
/// @param finished  by stage: when its last backward part is done on all its devices.
/// @return          by stage: when its reductions are done, its own and those across stages.
/// Source           semantics, section 6.
[[nodiscard]] inline std::vector<task_graph_builder::handle> reduce_gradients(
    const plan& p, const planning_graph& model, const stage_graph& stages, const std::vector<task_graph_builder::handle>& finished,
    transfer_sender& sender) {
  using handle = task_graph_builder::handle;
  detail::reducer reduce(p, stages, sender);
  task_graph_builder& out = sender.builder();

  std::vector<handle> inside = finished;
  struct tensor {
    double bytes = 0;
    std::vector<stage_id> holders;
  };
  std::map<std::pair<bool, std::int32_t>, tensor> tensors;  // by (weight group?, group or layer)
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage& st = p.stages[s];
    for_each_tensor(model, st, [&](const layer& l) {
      if (l.trainable_weight().value() <= 0) return;
      tensor& t = tensors[{l.weight_group >= 0, l.weight_group >= 0 ? l.weight_group : l.id.value}];
      t.bytes = l.weight.value();
      t.holders.push_back(stage_id(s));
    });
    if (const double bytes = trainable_bytes(model, st); st.devices.size() > 1 && bytes > 0) {
      std::vector<detail::reducer::member> members;
      for (const assignment& a : st.devices) members.push_back({a.device, stage_id(s)});
      inside[s] = reduce.ring(members, bytes, finished[s]);
    }
  }
  std::map<std::vector<stage_id>, double> shared;  // bytes by the set of stages that hold them
  for (const auto& [key, t] : tensors) {
    if (t.holders.size() > 1) shared[t.holders] += t.bytes;
  }
  std::vector<handle> all = inside;
  for (const auto& [holders, bytes] : shared) {
    std::vector<detail::reducer::member> members;
    const handle ready = out.add_barrier();
    for (const stage_id s : holders) {
      out.depend(inside[s.index()], ready);
      const device_id first = p[s].devices.front().device;
      const auto same = [&](const auto& m) { return m.device == first; };
      if (std::none_of(members.begin(), members.end(), same)) members.push_back({first, s});
    }
    if (members.size() < 2) continue;
    const handle end = p.parameter_server ? reduce.through_server(members, bytes, ready) : reduce.ring(members, bytes, ready);
    for (const stage_id s : holders) {
      const handle both = out.add_barrier();
      out.depend(all[s.index()], both);
      out.depend(end, both);
      all[s.index()] = both;
    }
  }
  return all;
}

}  // namespace hetplan::tasks
