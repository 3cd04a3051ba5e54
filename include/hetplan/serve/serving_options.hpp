// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Options of the simulation of a request stream.

#include <cstdint>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/placement_policy.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/serving_faults.hpp>

namespace hetplan::serve {

enum class history_detail { totals, records };

/// Changes of the deployment: their times and the policy that decides.
struct replacement {
  std::vector<seconds> at = {};  ///< ascending
  seconds cycle = {};            ///< or the interval of changes, while requests arrive
  any_placement_policy policy = {};
};

/// Source  semantics, section 11.
struct serving_options {
  std::vector<serving_fault> faults = {};
  replacement changes = {};
  history_detail detail = history_detail::totals;
  seconds bin = {};  ///< bin width of goodput over time; 0: a hundredth of the time from the first arrival to the last
  std::int64_t most_periods = 20'000'000;  ///< publications and changes after which the run is stopped
};

/// Throws invalid_input for change times that are not finite, positive and ascending; both times and a cycle; either without a policy; a
/// negative or non-finite cycle or bin; over 100 000 cycles or 10 000 bins between the first arrival and the last.
void validate(const serving_options& options, const request_stream& requests);

/// Returns the start of the period of the first request, fault or change [s after the first arrival]; not above 0.
[[nodiscard]] double first_period_s(const serving_options& options, const request_stream& requests, seconds period);

/// The progress of a run, for observers.
struct serving_progress {
  std::uint64_t handled = 0;  ///< arrived requests
  std::uint64_t of = 0;
  seconds now;
  double credit = 0;
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/serving_options.ipp>
#endif
