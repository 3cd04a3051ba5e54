// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/guarded_sharing.hpp>

#include <cmath>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::detail {

HETPLAN_INLINE void sharing_ledger::set_rate(double now_s, std::uint32_t number, double rate, const rate_changed& changed) {
  if (flows_.find(number) == nullptr || !std::isfinite(rate) || rate < 0) {
    throw invalid_model("network sharing: update(" + to_text(now_s) + " s) gives transfer " + std::to_string(number) + " " + to_text(rate) +
                        " B/s; expected a transfer under way and a finite rate >= 0");
  }
  flows_.set_rate(now_s, number, rate, changed);
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

HETPLAN_INLINE void sharing_ledger::check_next_end(double time_s, double next_s) {
  if (next_s > time_s) return;
  throw invalid_model("network sharing: next_end() = " + to_text(next_s) + " s after finish_until(" + to_text(time_s) +
                      " s); expected a later time");
}

}  // namespace HETPLAN_NAMESPACE::detail
