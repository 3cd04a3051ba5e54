// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/transfer_sender.hpp>

#include <cmath>

#include <hetplan/cluster/network.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/sorting.hpp>

namespace hetplan::tasks {

HETPLAN_INLINE transfer_rules::transfer_rules(const plan& p) : plan_(p) {
  for (const transfer_rule& r : p.schedule.transfers) {
    by_transfer_[name_of_transfer(r)].chunks.push_back(&r);
  }
  for (entry& mine : by_transfer_.values()) {
    sort_by(mine.chunks, [](const transfer_rule* r) { return r->chunk; });
  }
}

HETPLAN_INLINE std::span<const transfer_rule* const> transfer_rules::find(const transfer& t) {
  if (by_transfer_.empty()) return {};
  entry* rules = by_transfer_.find(name_of_transfer(t));
  if (rules == nullptr) return {};
  rules->used = true;
  return rules->chunks;
}

HETPLAN_INLINE void transfer_rules::require_all_used(const cluster& c) const {
  for (std::size_t i = 0; i < plan_.schedule.transfers.size(); ++i) {
    const transfer_rule& r = plan_.schedule.transfers[i];
    if (by_transfer_.find(name_of_transfer(r))->used) continue;
    const stage& from = plan_[r.from_stage];
    const bool inside = r.from_stage == r.to_stage && r.kind == transfer_kind::sync;
    throw invalid_input(
        "plan: /schedule/flows/" + std::to_string(i) + ": no " + std::string(to_string(r.kind)) + " transfer goes from device \"" +
        c[r.from].name + "\" to \"" + c[r.to].name + "\" for stages " + std::to_string(r.from_stage.value) + " and " +
        std::to_string(r.to_stage.value) + ", microbatch " + std::to_string(r.microbatch) +
        (inside && from.shard == sharding::fsdp ? "; under fsdp gradients are scattered, and scatters and gathers have no rules"
         : inside && from.column_count() > 1    ? "; a grid reduces gradients within its columns"
         : from.column_count() > 1              ? "; only the first device of a grid's row sends"
                                                : ""));
  }
}

HETPLAN_INLINE transfer_sender::transfer_sender(const plan& p, const cluster& c, task_graph_builder& out)
    : plan_(p), cluster_(c), rules_(p), out_(out), route_of_(c.size() * c.size(), no_route) {}

HETPLAN_INLINE std::pair<transfer_sender::handle, transfer_sender::handle> transfer_sender::send(transfer t) {
  t.route = route_of(t);
  t.latency_s = out_.route_at(t.route).latency.value();
  if (t.kind == transfer_kind::sync || t.kind == transfer_kind::gather || t.kind == transfer_kind::scatter)
    t.latency_s += cluster_[t.from].send_overhead.value();  // nobody's task sends it
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

HETPLAN_INLINE void transfer_sender::carry(transfer t, handle producer, handle consumer) {
  t.route = route_of(t);
  const double alone_s = out_.route_at(t.route).latency.value() + t.volume_bytes / cluster_.network().peak_bandwidth(t.from, t.to).value();
  t.carrier = producer.index;
  out_.prolong(producer, alone_s);
  out_.prolong(consumer, alone_s);
  const handle carried = out_.add(t);
  out_.depend(producer, carried);
  out_.depend(carried, consumer);
}

HETPLAN_INLINE void transfer_sender::carry_along(transfer t, handle work) {
  t.route = route_of(t);
  t.carrier = work.index;
  out_.depend(work, out_.add(t));
}

HETPLAN_INLINE std::uint32_t transfer_sender::route_of(const transfer& t) {
  if (!std::isfinite(t.volume_bytes)) {
    throw invalid_input(what_needs(t) + ", of " + to_text(t.volume_bytes) + " bytes; expected a finite number of them");
  }
  std::uint32_t& known = route_of_[t.from.index() * cluster_.size() + t.to.index()];
  if (known != no_route) return known;
  const route* r = cluster_.network().find(t.from, t.to);
  if (r == nullptr) throw missing_route(what_needs(t) + ", but cluster \"" + cluster_.name() + "\" has no route for that pair");
  return known = out_.add_route(*r);
}

HETPLAN_INLINE std::string transfer_sender::what_needs(const transfer& t) const {
  const std::string from = "\"" + plan_[t.from_stage].name + "\"", to = "\"" + plan_[t.to_stage].name + "\"";
  return (t.from_stage == t.to_stage ? "plan: stage " + from + " needs" : "plan: stages " + from + " and " + to + " need") +
         " a transfer from device \"" + cluster_[t.from].name + "\" to \"" + cluster_[t.to].name + "\"";
}

namespace detail {

class reducer {
 public:
  using handle = task_graph_builder::handle;
  using member = reduction::member;

  reducer(const plan& p, const stage_graph& stages, transfer_sender& sender)
      : p_(p), stages_(stages), sender_(sender), out_(sender.builder()) {}

  /// Adds a cyclic ring of transfers, each with a ring_share of the bytes. Returns the barrier at their end.
  handle ring(const std::vector<member>& members, double weight_bytes, handle start) {
    const handle end = out_.add_barrier();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto [first, last] = send(members[i], members[(i + 1) % members.size()], ring_share(members.size()) * weight_bytes);
      out_.depend(start, first);
      out_.depend(last, end);
    }
    return end;
  }

  /// Adds transfers from every member to the server and, after all of these, back. The server's own copy costs nothing.
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
                         .microbatch = stages_[from.stage].passes(phase::forward) - 1,
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

HETPLAN_INLINE sharded_stage::sharded_stage(const stage_costs& s, stage_id stage, transfer_sender& sender)
    : costs_(s), stage_(stage), sender_(sender), out_(sender.builder()), all_scattered_(out_.add_barrier()) {
  for (const auto& unit : units_of(s.plan[stage])) units_.push_back(bytes_of_unit(s.model, unit));
}

HETPLAN_INLINE sharded_stage::handle sharded_stage::ring(transfer_kind kind, int unit, int microbatch, double unit_bytes,
                                                         const handle* start) {
  const auto& devices = costs_.plan[stage_].devices;
  const auto n = static_cast<double>(devices.size());
  const handle end = out_.add_barrier();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto [first, last] = sender_.send({.kind = kind,
                                             .from = devices[i].device,
                                             .to = devices[(i + 1) % devices.size()].device,
                                             .from_stage = stage_,
                                             .to_stage = stage_,
                                             .microbatch = microbatch,
                                             .unit = unit,
                                             .volume_bytes = (n - 1) / n * unit_bytes});
    if (start != nullptr) out_.depend(*start, first);
    out_.depend(last, end);
  }
  return end;
}

HETPLAN_INLINE void sharded_stage::gather_before(std::span<const std::vector<piece>> pieces, std::span<const order_entry> passes) {
  const std::size_t units = units_.size();
  std::size_t at = 0;
  for (const order_entry& pass : passes) {
    if (pass.what == phase::backward_weight) continue;
    for (std::size_t k = 0; k < units; ++k, ++at) {
      const std::size_t unit = pass.what == phase::forward ? k : units - 1 - k;
      handle started;
      if (at > 0) {
        started = out_.add_barrier();
        for (const auto& of_device : pieces) out_.depend(of_device[at - 1].start, started);
      }
      // A unit without weights is not gathered, but its piece still waits for the one before.
      const bool moves = units_[unit].gathered > 0;
      if (!moves && at == 0) continue;
      const handle ready =
          moves ? ring(transfer_kind::gather, static_cast<int>(unit), pass.microbatch, units_[unit].gathered, at > 0 ? &started : nullptr)
                : started;
      for (const auto& of_device : pieces) out_.depend(ready, of_device[at].start);
    }
  }
}

HETPLAN_INLINE void sharded_stage::scatter(int unit, int microbatch, std::span<const handle> computed) {
  const double bytes = units_[static_cast<std::size_t>(unit)].scattered;
  const handle done = out_.add_barrier();
  for (const handle h : computed) out_.depend(h, done);
  out_.depend(bytes > 0 ? ring(transfer_kind::scatter, unit, microbatch, bytes, &done) : done, all_scattered_);
}

HETPLAN_INLINE sharded_stage::handle sharded_stage::finish() {
  const stage& s = costs_.plan[stage_];
  const double weights = trainable_bytes(costs_.model, s);
  if (s.shard != sharding::zero2 || weights <= 0) return all_scattered_;
  return ring(transfer_kind::sync, 0, costs_.graph[stage_].passes(phase::backward_input) - 1, weights, &all_scattered_);
}

HETPLAN_INLINE std::vector<double> reads_of(const stage_costs::part& cost, phase what, bool split) {
  std::vector<double> reads = cost.reads[static_cast<std::size_t>(what)];
  const auto& more = cost.reads[static_cast<std::size_t>(phase::backward_weight)];
  if (what != phase::backward_input || split || more.empty()) return reads;
  reads.resize(more.size(), 0);
  for (std::size_t t = 0; t < more.size(); ++t) reads[t] += more[t];
  return reads;
}

HETPLAN_INLINE sharded_stage::piece tier_reader::add(const compute_task& t, std::size_t position, const std::vector<double>& reads) {
  const device& d = cluster_[t.device];
  const handle start = out_.add_barrier(), work = out_.add(t);
  out_.depend(start, work);
  transfer read{.kind = transfer_kind::read,
                .from = t.device,
                .to = t.device,
                .from_stage = t.stage,
                .to_stage = t.stage,
                .microbatch = t.microbatch,
                .pass = t.pass,
                .to_position = static_cast<int>(position),
                .first_sample = t.first_sample,
                .last_sample = t.last_sample};
  for (std::size_t tier = 0; tier < reads.size(); ++tier) {
    if (reads[tier] == 0) continue;
    const memory_tier& from = d.tiers[tier];
    const auto add_part = [&](double bytes, double latency_s, std::uint32_t way) {
      read.unit = static_cast<int>(tier);
      read.volume_bytes = bytes;
      read.latency_s = latency_s;
      read.route = way;
      const handle h = out_.add(read);
      out_.depend(start, h);
      out_.depend(h, work);
    };
    add_part(reads[tier], 0, way_over(from.shared));
    if (from.bandwidth < cluster_.network()[from.shared].capacity) add_part(0, reads[tier] / from.bandwidth.value(), way_over({}));
  }
  return {start, work};
}

HETPLAN_INLINE std::uint32_t tier_reader::way_over(resource_id r) {
  if (const std::uint32_t* known = ways_.find({r})) return *known;
  route way;
  if (r.valid()) way.via.push_back({r, 1});
  return ways_[{r}] = out_.add_route(std::move(way));
}

}  // namespace hetplan::tasks
