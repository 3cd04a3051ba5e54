// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/guarded_sharing.hpp>

#include <algorithm>
#include <cmath>

#include <hetplan/core/error.hpp>

namespace hetplan::detail {

HETPLAN_INLINE bool sharing_ledger::set_rate(double now_s, std::uint32_t number, double rate, const rate_changed& changed) {
  const auto* f = flows_.find(number);
  if (f == nullptr || !std::isfinite(rate) || rate < 0) {
    throw invalid_model("network sharing: update(" + to_text(now_s) + " s) gives transfer " + std::to_string(number) + " " + to_text(rate) +
                        " B/s; expected a transfer under way and a finite rate >= 0");
  }
  const bool other = f->rate != rate;
  flows_.set_rate(now_s, number, rate, changed);
  return other;
}

HETPLAN_INLINE void sharing_ledger::check_load(double now_s) {
  if (const auto excess = load_.exceeded_by(flows_)) {
    throw invalid_model("network sharing: update(" + to_text(now_s) + " s) gives " + to_text(excess->taken) + " B/s of resource \"" +
                        net_->resources()[excess->resource].name + "\", which has " + to_text(excess->capacity) + " B/s");
  }
}

HETPLAN_INLINE void sharing_ledger::end(double time_s, std::uint32_t number) {
  const auto* f = flows_.find(number);
  // Ends that rounding tells apart happen together, a little early.
  const double rounding = f == nullptr ? 0 : 1e-6 * f->transfer->volume_bytes + 1e-11 * time_s * f->rate;
  if (f == nullptr || f->left(time_s) > rounding) {
    throw invalid_model("network sharing: finish_until(" + to_text(time_s) + " s) ends transfer " + std::to_string(number) +
                        (f == nullptr ? std::string(", which is not under way")
                                      : " with " + to_text(f->left(time_s)) + " B left of " + to_text(f->transfer->volume_bytes) + " B"));
  }
  flows_.stop(number);
}

HETPLAN_INLINE void sharing_ledger::refuse_next_end(double next_s) {
  throw invalid_model("network sharing: next_end() = " + to_text(next_s) + " s; expected a time >= 0, or infinity where none is to come");
}

HETPLAN_INLINE void sharing_ledger::refuse_idleness(double time_s, int rounds) {
  throw invalid_model("network sharing: next_end() came to nothing " + std::to_string(rounds) + " times up to " + to_text(time_s) +
                      " s: finish_until ended no transfer and update changed no rate; expected one of the two");
}

HETPLAN_INLINE void sharing_ledger::check_nothing_left(double now_s) const {
  for (const auto& f : flows_) {
    const auto stands = [&](const resource_use& u) { return load_.capacity_of(u.resource.index()) <= 0; };
    if (std::any_of(f.route.begin(), f.route.end(), stands)) continue;
    throw invalid_model("network sharing: next_end() = inf s at " + to_text(now_s) + " s, with transfer " + std::to_string(f.number) +
                        " under way at " + to_text(f.rate) + " B/s and " + to_text(f.left(now_s)) + " B left of " +
                        to_text(f.transfer->volume_bytes) + " B; expected the time at which it ends or rates change");
  }
}

HETPLAN_INLINE void sharing_ledger::check_next_end(double time_s, double next_s) {
  if (next_s > time_s) return;
  throw invalid_model("network sharing: next_end() = " + to_text(next_s) + " s after finish_until(" + to_text(time_s) +
                      " s); expected a later time");
}

}  // namespace hetplan::detail
