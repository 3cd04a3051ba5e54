// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How a stream of requests is played.

#include <cstdint>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/placement_policy.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/serving_faults.hpp>

namespace hetplan::serve {

enum class history_detail { totals, records };

/// When another deployment holds, and who says which.
struct replacement {
  std::vector<seconds> at = {};  ///< ascending
  seconds cycle = {};            ///< or every so often, as long as requests arrive
  any_placement_policy policy = {};
};

/// Source  semantics, section 11.
struct serving_options {
  std::vector<serving_fault> faults = {};
  replacement changes = {};
  history_detail detail = history_detail::totals;
  seconds bin = {};                        ///< of goodput over time; 0: a hundredth of the time from the first arrival to the last
  std::int64_t most_periods = 20'000'000;  ///< publications and changes after which the run is stopped
};

/// Throws invalid_input: changes at times that are not finite, above 0 and ascending, times and a cycle, either without a policy, a cycle
/// or bin that is negative or not finite, a cycle of which more than 100 000 fit between the first arrival and the last, a bin of which
/// more than 10 000 do.
void validate(const serving_options& options, const request_stream& requests);

/// When the period begins in which the first request, fault or change comes [s after the first arrival]: not above 0.
[[nodiscard]] double first_period_s(const serving_options& options, const request_stream& requests, seconds period);

/// What an observer of a run is told from time to time.
struct serving_progress {
  std::uint64_t handled = 0;  ///< requests that have arrived
  std::uint64_t of = 0;
  seconds now;
  double credit = 0;
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/serving_options.ipp>
#endif
