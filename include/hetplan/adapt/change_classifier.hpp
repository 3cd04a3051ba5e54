// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which changes call for another plan, which for other transfers, and which for nothing.

#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/conditions.hpp>
#include <hetplan/adapt/policy_options.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// What a change calls for.
enum class change_size {
  none,   ///< nothing
  small,  ///< the same plan, perhaps with its transfers in another order
  large   ///< another plan, perhaps
};

/// Tells large changes from small ones and from noise. Ask it at every call of `react`: it remembers what it was asked.
///
/// *Large*: the first question; conditions that differ by `small` or more (adapt::change, a ratio) from those of the last large
/// change, so that many small changes one way add up to a large one; other foreign traffic (who sends to whom, at which priority;
/// not how much is left); another QoE wanted; a running plan that cannot run, or a decision that was dropped.
/// *Small*: any other change of the conditions by `ignore` or more since the last change that was not none.
///
/// Complexity   O(devices + resources + traffic) a question.
/// Throws       invalid_input (`small` or `ignore` negative or not finite).
/// Determinism  the same questions in the same order get the same answers; it reads no clock.
/// Source       Dora, section 5: within 10 % only the network's schedule is adjusted. What it is measured against, and all but the
///              conditions, is ours.
class change_classifier {
 public:
  explicit change_classifier(const policy_options& o);

  /// Is there anything to answer?
  [[nodiscard]] change_size classify(const situation& s);

 private:
  double large_, ignore_;
  std::optional<conditions> answered_, last_;
  using traffic_list = std::vector<std::tuple<device_id, device_id, int>>;
  [[nodiscard]] static traffic_list list(std::span<const foreign_traffic> traffic);
  traffic_list traffic_;
  qoe_target wanted_;
};

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/change_classifier.ipp>
#endif
