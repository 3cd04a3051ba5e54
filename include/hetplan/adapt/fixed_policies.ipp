// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/fixed_policies.hpp>

#include <cmath>
#include <string>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE policy_options checked_options(policy_options o, const char* who) {
  const auto require = [who](bool ok, const char* option, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string(who) + ": " + option + " = " + to_text(given) + "; expected " + expected);
  };
  require(std::isfinite(o.small) && o.small >= 0, "small", o.small, "a finite number >= 0");
  require(std::isfinite(o.ignore) && o.ignore >= 0, "ignore", o.ignore, "a finite number >= 0");
  require(o.most_plans >= 1, "most_plans", static_cast<double>(o.most_plans), "at least 1");
  return o;
}

HETPLAN_INLINE reaction static_plan::react(const situation& s) const {
  if (s.running == nullptr) return {.next = first_};
  return {};
}

namespace detail {

HETPLAN_INLINE change_size change_classifier::classify(const situation& s) {
  const bool large = !answered_ || change(*answered_, s.noticed) >= large_ || traffic_ != list(s.traffic) || wanted_ != s.wanted ||
                     !s.can_run || !s.dropped.empty();
  if (!large) {
    const double since = change(*last_, s.noticed);
    if (since == 0 || since < ignore_) return change_size::none;
    last_ = s.noticed;
    return change_size::small;
  }
  answered_ = last_ = s.noticed;
  traffic_ = list(s.traffic);
  wanted_ = s.wanted;
  return change_size::large;
}

HETPLAN_INLINE change_classifier::flow_list change_classifier::list(std::span<const foreign_traffic> traffic) {
  flow_list all;
  for (const foreign_traffic& f : traffic) all.emplace_back(f.from, f.to, f.priority);
  return all;
}

}  // namespace detail

}  // namespace HETPLAN_NAMESPACE::adapt
