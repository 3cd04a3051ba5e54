// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/service_time_table.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::serve {

HETPLAN_INLINE double batch_curve::at(int n) const {
  HETPLAN_ASSERT(!batch.empty() && n >= 1 && n <= batch.back());
  const auto above = std::ranges::lower_bound(batch, n);
  const auto i = static_cast<std::size_t>(above - batch.begin());
  if (*above == n) return seconds_at[i];
  const double part = static_cast<double>(n - batch[i - 1]) / static_cast<double>(batch[i] - batch[i - 1]);
  return seconds_at[i - 1] + part * (seconds_at[i] - seconds_at[i - 1]);
}

namespace detail {

HETPLAN_INLINE void validate_curve(const std::string& who, const batch_curve& c) {
  if (c.batch.empty() || c.batch.front() != 1) throw invalid_input(who + ": expected sizes of batch that begin with 1");
  if (c.batch.size() != c.seconds_at.size())
    throw invalid_input(who + ": " + std::to_string(c.seconds_at.size()) + " times for " + std::to_string(c.batch.size()) +
                        " sizes of batch; expected as many");
  for (std::size_t i = 0; i < c.batch.size(); ++i) {
    if (i > 0 && c.batch[i] <= c.batch[i - 1]) throw invalid_input(who + ": sizes of batch; expected ascending ones");
    if (!std::isfinite(c.seconds_at[i]) || c.seconds_at[i] <= 0)
      throw invalid_input(who + ": " + to_text(c.seconds_at[i]) + " s for a batch of " + std::to_string(c.batch[i]) +
                          "; expected a finite time > 0");
    if (i > 0 && c.seconds_at[i] < c.seconds_at[i - 1])
      throw invalid_input(who + ": a batch of " + std::to_string(c.batch[i]) + " takes less time than one of " +
                          std::to_string(c.batch[i - 1]) + "; expected at least as much");
  }
}

}  // namespace detail

HETPLAN_INLINE service_time_table::service_time_table(std::vector<std::vector<variant_times>> times) : times_(std::move(times)) {
  for (std::size_t s = 0; s < times_.size(); ++s) {
    for (std::size_t v = 0; v < times_[s].size(); ++v) {
      const std::string who = "service_time_table: service " + std::to_string(s) + ", variant " + std::to_string(v);
      const auto& t = times_[s][v];
      detail::validate_curve(who + ", pass", t.pass);
      if (!t.step.batch.empty()) detail::validate_curve(who + ", step", t.step);
      if (!std::isfinite(t.per_token_s) || t.per_token_s < 0)
        throw invalid_input(who + ": per_token_s = " + to_text(t.per_token_s) + "; expected a finite time >= 0");
    }
  }
}

HETPLAN_INLINE void service_time_table::refuse(const service_run& r) const {
  throw invalid_model("service_time_table: times of " + std::to_string(times_.size()) + " services, none of service " +
                      std::to_string(r.id.value) + " \"" + r.what.name + "\", variant " + std::to_string(r.variant) +
                      "; expected those of every service and variant that runs");
}

HETPLAN_INLINE int service_time_table::largest_batch(const service_run& r) const {
  const auto& t = of(r);
  return t.step.batch.empty() ? t.pass.batch.back() : std::min(t.pass.batch.back(), t.step.batch.back());
}

}  // namespace hetplan::serve
