// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/sharded_stage.hpp>

#include <algorithm>

#include <hetplan/plan/stage_sums.hpp>

namespace hetplan::tasks {

HETPLAN_INLINE sharded_stage::sharded_stage(const staged& s, stage_id stage, transfer_sender& sender)
    : staged_(s), stage_(stage), sender_(sender), out_(sender.builder()), all_scattered_(out_.add_barrier()) {
  for (const auto& unit : units_of(s.plan[stage])) units_.push_back(bytes_of_unit(s.model, unit));
}

HETPLAN_INLINE sharded_stage::handle sharded_stage::ring(transfer_kind kind, int unit, int microbatch, double unit_bytes,
                                                         const handle* start) {
  const auto& devices = staged_.plan[stage_].devices;
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
      // Without weights nothing is gathered; the piece waits for the one before it all the same.
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
  const stage& s = staged_.plan[stage_];
  const double weights = trainable_bytes(staged_.model, s);
  if (s.shard != sharding::zero2 || weights <= 0) return all_scattered_;
  return ring(transfer_kind::sync, 0, staged_.graph[stage_].passes(phase::backward_input) - 1, weights, &all_scattered_);
}

}  // namespace hetplan::tasks
