// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A stage before a graph of stages: what it sends to each of them, and which ports it opens and closes.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/graph/sequence_cuts.hpp>
#include <hetplan/partition/group_links.hpp>
#include <hetplan/partition/step_rule.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// What a new stage sees behind it. Source: own.
struct seen_suffix {
  step_rule::suffix tails;
  int depth = 0;
  std::pair<double, double> out = {};  ///< bytes per sample to all stages behind, and gradients that come back
};

/// Extends the ports of partial plans; buffers are reused.
///
/// Complexity  a call: O(crossings x ports + ports^2) of the boundary.
/// Source      own: the step_rule of chains on a graph of stages, which Dora's plans are (section 4.1).
class graph_tails {
 public:
  graph_tails(const crossing_table& cuts, const group_links& links, const step_rule& rule) : cuts_(cuts), links_(links), rule_(rule) {}

  /// A stage of blocks [first, last) on a group before a partial plan that begins at `last`. A tensor goes to each
  /// stage that reads it once, with the most bytes that it reads.
  [[nodiscard]] seen_suffix look(std::size_t first, std::size_t last, std::size_t group, std::span<const tail> ports);

  /// The ports once the stage, itself `mine`, is placed. Valid until the next call.
  [[nodiscard]] std::span<const tail> extend(std::size_t first, std::size_t last, std::span<const tail> ports, tail mine);

 private:
  static constexpr std::uint32_t new_stage = 1U << 20, old_stage = new_stage + 1;
  struct traffic_to {
    double forward_bytes = 0, gradient_bytes = 0;
    bool used = false;
  };

  const crossing_table& cuts_;
  const group_links& links_;
  const step_rule& rule_;
  std::vector<traffic_to> traffic_;  ///< by port, at the first port of each stage
  std::vector<crossing> most_;
  std::vector<tail> tails_;
};

}  // namespace HETPLAN_NAMESPACE::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/graph_tails.ipp>
#endif
