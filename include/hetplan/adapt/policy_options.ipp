// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/policy_options.hpp>

#include <cmath>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE policy_options checked_options(policy_options o, const char* who) {
  const auto require = [who](bool ok, const char* option, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string(who) + ": " + option + " = " + to_text(given) + "; expected " + expected);
  };
  require(std::isfinite(o.small) && o.small >= 0, "small", o.small, "a finite number >= 0");
  require(std::isfinite(o.ignore) && o.ignore >= 0, "ignore", o.ignore, "a finite number >= 0");
  require(o.most_plans >= 1, "most_plans", static_cast<double>(o.most_plans), "at least 1");
  return o;
}

}  // namespace hetplan::adapt
