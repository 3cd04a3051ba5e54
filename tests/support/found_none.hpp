// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Returns true if a status without a solution is sound: proven with a valid proof, or none found without a proof.

#include <algorithm>

#include <hetplan/core/error.hpp>

namespace hetplan::test {

inline bool found_none(const status& s) {
  if (s.reason.empty()) return false;
  if (s.result == outcome::none_found) return !s.proof;
  if (s.result != outcome::infeasible || !s.proof || s.proof->of.empty()) return false;
  const auto excludes = [](const infeasibility_proof::row& r) { return !r.what.empty() && r.needed > r.available; };
  return s.proof->searched > 0 || std::any_of(s.proof->rows.begin(), s.proof->rows.end(), excludes);
}

}  // namespace hetplan::test
