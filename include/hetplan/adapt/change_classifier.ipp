// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/change_classifier.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE change_classifier::change_classifier(const policy_options& o) : large_(std::max(o.small, o.ignore)), ignore_(o.ignore) {
  static_cast<void>(checked_options(o, "change_classifier"));
}

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

HETPLAN_INLINE change_classifier::traffic_list change_classifier::list(std::span<const foreign_traffic> traffic) {
  traffic_list all;
  for (const foreign_traffic& f : traffic) all.emplace_back(f.from, f.to, f.priority);
  return all;
}

}  // namespace HETPLAN_NAMESPACE::adapt
