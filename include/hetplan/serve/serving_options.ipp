// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/serving_options.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::serve {

HETPLAN_INLINE void validate(const serving_options& options, const request_stream& requests) {
  const auto refuse = [](const std::string& what) { throw invalid_input("serving_options: " + what); };
  const auto amount = [&](const char* what, double v) {
    if (!std::isfinite(v) || v < 0) refuse(std::string(what) + " = " + to_text(v) + " s; expected a finite time >= 0");
  };
  const auto& c = options.changes;
  seconds before;
  for (const auto at : c.at) {
    if (!std::isfinite(at.value()) || at <= before)
      refuse("a change at " + to_text(at.value()) + " s; expected a finite time above " + to_text(before.value()) + " s");
    before = at;
  }
  amount("changes.cycle", c.cycle.value());
  const bool in_cycles = c.cycle.value() > 0;
  if (!c.at.empty() && in_cycles) refuse("changes at given times and every " + to_text(c.cycle.value()) + " s; expected one of the two");
  if ((!c.at.empty() || in_cycles) && !c.policy) refuse("changes without a policy that says which");
  amount("bin", options.bin.value());
  const auto few = [&](const char* what, seconds width, int most) {
    if (width.value() > 0 && width.value() * most < requests.span().value())
      refuse(std::string(what) + " = " + to_text(width.value()) + " s; expected at least " + to_text(requests.span().value() / most) +
             " s, so that " + std::to_string(most) + " reach from the first arrival to the last");
  };
  few("changes.cycle", c.cycle, 100'000);
  few("bin", options.bin, 10'000);
}

HETPLAN_INLINE double first_period_s(const serving_options& options, const request_stream& requests, seconds period) {
  double first_s = std::numeric_limits<double>::infinity();
  if (!requests.empty()) first_s = requests.first_arrival().value();
  if (!options.faults.empty()) first_s = std::min(first_s, options.faults.front().at.value());
  if (!options.changes.at.empty()) first_s = std::min(first_s, options.changes.at.front().value());
  if (!std::isfinite(first_s)) return 0;
  const double whole = std::floor(first_s / period.value());
  const bool is_next = at_most((whole + 1) * period.value(), first_s, period.value());  // corrects a rounded quotient
  return std::min(0.0, requests.since_first_s((is_next ? whole + 1 : whole) * period.value()));
}

}  // namespace hetplan::serve
