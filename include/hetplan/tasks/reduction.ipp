// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/reduction.hpp>

#include <utility>

#include <hetplan/cluster/exchange.hpp>
#include <hetplan/plan/reductions.hpp>

namespace hetplan::tasks {

namespace detail {

class reducer {
 public:
  using handle = task_graph_builder::handle;
  using member = reduction::member;

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
    return sender_.send({.kind = transfer_kind::sync,
                         .from = from.device,
                         .to = to.device,
                         .from_stage = from.stage,
                         .to_stage = to.stage,
                         .microbatch = stages_[from.stage].microbatches - 1,
                         .volume_bytes = volume_bytes});
  }

  const plan& p_;
  const stage_graph& stages_;
  transfer_sender& sender_;
  task_graph_builder& out_;
};

}  // namespace detail

HETPLAN_INLINE std::vector<task_graph_builder::handle> reduce_gradients(const plan& p, const planning_graph& model,
                                                                        const stage_graph& stages,
                                                                        const std::vector<task_graph_builder::handle>& finished,
                                                                        transfer_sender& sender) {
  using handle = task_graph_builder::handle;
  detail::reducer reduce(p, stages, sender);
  task_graph_builder& out = sender.builder();

  std::vector<handle> inside = finished;
  const std::vector<reduction> reductions = reductions_of(p, model);
  const auto both = [&](handle a, handle b) {
    const handle end = out.add_barrier();
    out.depend(a, end);
    out.depend(b, end);
    return end;
  };
  for (const reduction& r : reductions) {
    if (r.is_across_stages()) continue;
    const std::size_t s = r.holders.front().index();
    const handle end = reduce.ring(r.members, r.bytes, finished[s]);
    inside[s] = p.stages[s].column_count() > 1 ? both(inside[s], end) : end;
  }
  std::vector<handle> all = inside;
  for (const reduction& r : reductions) {
    if (!r.is_across_stages()) continue;
    const handle ready = out.add_barrier();
    for (const stage_id s : r.holders) out.depend(inside[s.index()], ready);
    const handle end = p.parameter_server ? reduce.through_server(r.members, r.bytes, ready) : reduce.ring(r.members, r.bytes, ready);
    for (const stage_id s : r.holders) all[s.index()] = both(all[s.index()], end);
  }
  return all;
}

}  // namespace hetplan::tasks
