// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The placement policy that was told what to answer.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/placement_policy.hpp>

namespace hetplan::serve {

/// Answers its deployments one after the other, and the last one from then on. The first is that of the beginning.
/// Source  ours: what a file of deployments says.
class fixed_placement {
 public:
  /// Of none, `place` throws invalid_input.
  explicit fixed_placement(std::vector<deployment> in_turn) : in_turn_(std::move(in_turn)) {}
  [[nodiscard]] deployment place(const placement_question& q) const {
    if (in_turn_.empty()) throw invalid_input("fixed_placement: holds no deployment; expected one at least");
    return in_turn_[std::min(static_cast<std::size_t>(q.number), in_turn_.size() - 1)];
  }

 private:
  std::vector<deployment> in_turn_;
};
static_assert(check_placement_policy<fixed_placement>());

}  // namespace hetplan::serve
