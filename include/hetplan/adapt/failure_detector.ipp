// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/failure_detector.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE seconds heartbeat::noticed(seconds at) const {
  double last = std::floor(at.value() / period.value()) * period.value();
  if (last > at.value()) last -= period.value();  // the quotient was rounded up
  return std::max(at, seconds(last) + timeout + probe);
}

HETPLAN_INLINE void check_heartbeat(const heartbeat& h) {
  const auto require = [](bool ok, const char* field, double given, const std::string& expected) {
    if (!ok) throw invalid_input("heartbeat: " + std::string(field) + " = " + to_text(given) + "; expected " + expected);
  };
  require(is_finite(h.period) && h.period.value() > 0, "period", h.period.value(), "seconds > 0");
  require(is_finite(h.timeout) && h.timeout >= h.period, "timeout", h.timeout.value(),
          "at least the period, " + to_text(h.period.value()) + " s");
  require(is_finite(h.probe) && h.probe.value() >= 0, "probe", h.probe.value(), "finite seconds >= 0");
  require(is_finite(h.beat) && h.beat.value() >= 0, "beat", h.beat.value(), "finite bytes >= 0");
}

}  // namespace hetplan::adapt
