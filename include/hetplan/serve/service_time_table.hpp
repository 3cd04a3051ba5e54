// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Service times that were measured: seconds at some sizes of batch.

#include <vector>

#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// Seconds at ascending sizes of batch, the first of them 1; linear between two.
struct batch_curve {
  std::vector<int> batch;
  std::vector<double> seconds_at;

  /// Requires 1 <= n <= batch.back().
  [[nodiscard]] double at(int n) const;
  friend bool operator==(const batch_curve&, const batch_curve&) = default;
};

/// What was measured of one variant.
struct variant_times {
  batch_curve pass;
  double per_token_s = 0;  ///< of a pass, for each token of its batch
  batch_curve step = {};   ///< empty for a service that generates no tokens
  friend bool operator==(const variant_times&, const variant_times&) = default;
};

/// A service_time that reads a table: [service][variant].
///
/// Throws  invalid_model where it is asked for a service or a variant that it does not have.
/// Source  EPARA, section 5.2: compute times from a table by GPU and service. Deviation: also by batch and tokens.
class service_time_table {
 public:
  /// Throws invalid_input: sizes of batch that do not begin with 1 or do not ascend, times that are not finite and above 0, or that
  /// decrease, another number of times.
  explicit service_time_table(std::vector<std::vector<variant_times>> times);

  [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const {
    const auto& t = of(r);
    return seconds(t.pass.at(b.requests) + t.per_token_s * b.tokens_in);
  }
  [[nodiscard]] seconds step(const service_run& r, int requests) const { return seconds(of(r).step.at(requests)); }
  [[nodiscard]] int largest_batch(const service_run& r) const;

 private:
  [[nodiscard]] const variant_times& of(const service_run& r) const {
    const auto s = r.id.index(), v = static_cast<std::size_t>(r.variant);
    if (s >= times_.size() || v >= times_[s].size()) refuse(r);
    return times_[s][v];
  }
  [[noreturn]] void refuse(const service_run& r) const;
  std::vector<std::vector<variant_times>> times_;
};
static_assert(check_service_time<service_time_table>());

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/service_time_table.ipp>
#endif
