// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A stage before a graph of stages: what it sends to each of them, and which ports it opens and closes.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/graph/sequence_cuts.hpp>
#include <hetplan/partition/cell_policy.hpp>
#include <hetplan/partition/group_links.hpp>
#include <hetplan/plan/step_law.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// What a new stage sees behind it. Source: own.
struct seen_suffix {
  pipeline_tail tails;
  int depth = 0;
  std::pair<double, double> out = {};  ///< bytes per sample to all stages behind, and gradients that come back
};

/// Extends the ports of partial plans; buffers are reused.
///
/// Complexity  a call: O(crossings x ports + ports^2) of the boundary.
/// Source      own: the step law of chains on a graph of stages, which Dora's plans are (section 4.1).
class graph_tails {
 public:
  graph_tails(const crossing_table& cuts, const group_links& links) : cuts_(cuts), links_(links) {}

  /// A stage of blocks [first, last) on a group before a partial plan that begins at `last`. A tensor goes to each
  /// stage that reads it once, with the most bytes that it reads.
  template <step_law Law>
  [[nodiscard]] seen_suffix look(const Law& law, const pipelining& p, std::size_t first, std::size_t last, std::size_t group,
                                 std::span<const tail> ports) {
    add_traffic(first, last, ports);
    seen_suffix seen;
    for (std::size_t i = 0; i < traffic_.size(); ++i) {
      const traffic_to& f = traffic_[i];
      if (!f.used) continue;
      const tail& t = ports[i];
      const link_times link = links_.time(links_.between(group, t.group), f.forward_bytes, f.gradient_bytes);
      const pipeline_tail through = law.extend(p, link, pipeline_tail{t.reach_s, t.rest_s});
      seen.tails = {std::max(seen.tails.reach_s, through.reach_s), std::max(seen.tails.rest_s, through.rest_s)};
      seen.depth = std::max(seen.depth, static_cast<int>(t.depth));
      seen.out.first += f.forward_bytes;
      seen.out.second += f.gradient_bytes;
    }
    return seen;
  }

  /// The ports once the stage, itself `mine`, is placed. Valid until the next call.
  [[nodiscard]] std::span<const tail> extend(std::size_t first, std::size_t last, std::span<const tail> ports, tail mine);

 private:
  static constexpr std::uint32_t new_stage = 1U << 20, old_stage = new_stage + 1;
  struct traffic_to {
    double forward_bytes = 0, gradient_bytes = 0;
    bool used = false;
  };

  /// Fills traffic_: what the stage sends to each stage behind.
  void add_traffic(std::size_t first, std::size_t last, std::span<const tail> ports);

  const crossing_table& cuts_;
  const group_links& links_;
  std::vector<traffic_to> traffic_;  ///< by port, at the first port of each stage
  std::vector<crossing> most_;
  std::vector<tail> tails_;
};

}  // namespace HETPLAN_NAMESPACE::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/graph_tails.ipp>
#endif
