// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How far memory lets a search come, whatever the stages cost.

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <hetplan/partition/candidate_costs.hpp>
#include <hetplan/partition/device_space.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// The largest boundary before which all blocks can still be put somewhere, by state of the device space and number of
/// stages behind. Nothing that is feasible lies beyond: a stage that fits also fits without some of its blocks and with
/// fewer microbatches in flight, so of several ways to place what comes first, the one that places most will do.
///
/// @param in_flight  (stages behind and with the stage) -> microbatches that it holds at least; non-decreasing.
/// Complexity        O(moves x stages + states x boundaries) questions whether a stage has room, stages at most the
///                   number of devices.
/// Source            own; the memory of a stage is Asteroid's, eq. 3.
class memory_reach {
 public:
  template <class InFlight>
  memory_reach(const candidate_costs& costs, const device_space& space, const std::vector<std::size_t>& boundaries, int max_stages,
               InFlight&& in_flight)
      : rows_(1 + static_cast<std::size_t>(std::min(max_stages, std::accumulate(space.left[0].begin(), space.left[0].end(), 0)))),
        last_(space.states() * rows_, 0) {
    for (std::size_t state = space.states(); state-- > 0;) {
      for (std::size_t following = rows_ - 1; following-- > 0;) {
        std::size_t& end = last_[state * rows_ + following] = last(state, following + 1);
        const int held = in_flight(static_cast<int>(following) + 1);
        for (const device_space::move& m : space.moves[state]) {
          const std::size_t begin = last(m.to, following + 1);
          end = std::max(end, begin);
          while (end + 1 < boundaries.size() && costs.has_room(boundaries[begin], boundaries[end + 1], m.group, held)) ++end;
        }
      }
    }
  }

  /// Index of the boundary; 0: no stage can come before so many.
  [[nodiscard]] std::size_t last(std::size_t state, std::size_t following) const {
    return last_[state * rows_ + std::min(following, rows_ - 1)];
  }

 private:
  std::size_t rows_;
  std::vector<std::size_t> last_;  ///< by state, then stages behind
};

}  // namespace HETPLAN_NAMESPACE::partition
