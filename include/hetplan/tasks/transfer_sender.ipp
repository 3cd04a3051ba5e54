// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/transfer_sender.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::tasks {

HETPLAN_INLINE transfer_rules::transfer_rules(const plan& p) : plan_(p) {
  for (const transfer_rule& r : p.schedule.transfers) {
    by_transfer_[name_of_transfer(r)].chunks.push_back(&r);
  }
  for (auto& [_, mine] : by_transfer_) {
    std::sort(mine.chunks.begin(), mine.chunks.end(), [](const transfer_rule* a, const transfer_rule* b) { return a->chunk < b->chunk; });
  }
}

HETPLAN_INLINE std::span<const transfer_rule* const> transfer_rules::find(const transfer& t) {
  if (by_transfer_.empty()) return {};
  const auto it = by_transfer_.find(name_of_transfer(t));
  if (it == by_transfer_.end()) return {};
  it->second.used = true;
  return it->second.chunks;
}

HETPLAN_INLINE void transfer_rules::require_all_used(const cluster& c) const {
  for (std::size_t i = 0; i < plan_.schedule.transfers.size(); ++i) {
    const transfer_rule& r = plan_.schedule.transfers[i];
    if (by_transfer_.at(name_of_transfer(r)).used) continue;
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

}  // namespace hetplan::tasks
