// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/ladder.hpp>

#include <cmath>
#include <string>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE void check_ladder_options(const ladder_options& o) {
  const auto require = [](bool ok, const char* option, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string("ladder: ") + option + " = " + to_text(given) + "; expected " + expected);
  };
  static_cast<void>(checked_options(o.common, "ladder"));
  require(std::isfinite(o.tolerance) && o.tolerance >= 0, "tolerance", o.tolerance, "a finite number >= 0");
  require(o.spare >= 0 && o.spare < 1, "spare", o.spare, "a share >= 0 and < 1");
  require(is_finite(o.patience) && o.patience >= seconds{}, "patience", o.patience.value(), "finite seconds >= 0");
  require(is_finite(o.dwell) && o.dwell >= seconds{}, "dwell", o.dwell.value(), "finite seconds >= 0");
  require(is_finite(o.payback) && o.payback > seconds{}, "payback", o.payback.value(), "finite seconds > 0");
}

}  // namespace HETPLAN_NAMESPACE::adapt
