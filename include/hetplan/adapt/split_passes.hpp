// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The same plan in smaller passes: each of a stage's passes halved once or more.

#include <limits>
#include <span>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// How often the passes of a stage are halved.
struct pass_halvings {
  int forward = 0;
  int backward = 0;
  bool fill = false;                                             ///< the first forward once more
  long long drain_from = std::numeric_limits<long long>::max();  ///< backwards from this sample of the pipeline on once more

  friend bool operator==(const pass_halvings&, const pass_halvings&) = default;
};

/// How often a pass of so many samples can be halved: its samples, and each device's share of them, stay whole.
///
/// @param size  the stage's microbatch size, of which its devices have shares.
[[nodiscard]] int most_halvings(const stage& s, int size, long long samples);

/// Cuts for the stages that are halved; a pass that cannot be halved so often is halved as often as it can be. Explicit orders speak of
/// other passes then: they have to be made anew.
///
/// In training devices that share samples go back over those that they went over: both phases of their stage are halved as the one that
/// is halved more often, and its drain is no smaller. Where they are cut apart already the stage stays as it is.
///
/// @param by_stage  by stage id.
/// Complexity       O(stages + layers + passes).
/// Source           DeepCEE, section 3.4; semantics, section 5 (cuts).
[[nodiscard]] plan split_passes(plan p, const planning_graph& model, std::span<const pass_halvings> by_stage);

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/split_passes.ipp>
#endif
