// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Stages that end at one boundary, worked out when first asked for.

#include <algorithm>
#include <utility>
#include <vector>

#include <hetplan/partition/candidate_costs.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// A search walks from the last boundary to the first and asks about the stages that end there many times: for every
/// state of the device space and every number of stages behind.
///
/// Source  our own.
class stage_memo {
 public:
  struct entry {
    std::size_t end = 0;  ///< the boundary that this was worked out for; 0: for none
    placed_stage placed = {};
    stage_budget budget = {.energy_J = -1};  ///< < 0: not asked for yet
  };

  /// @param unlimited  by group, then begin: of all who share out the begins among each other.
  stage_memo(const candidate_costs& costs, const std::vector<std::size_t>& boundaries, std::vector<entry>& unlimited)
      : costs_(costs), boundaries_(boundaries), unlimited_(unlimited), limited_(unlimited.size() / boundaries.size()) {}

  /// The stage between two boundaries on a group, with memory for `in_flight` microbatches.
  entry& at(std::size_t begin, std::size_t end, std::size_t group, int in_flight) {
    entry& any = unlimited(begin, end, group);
    if (in_flight <= any.placed.most_in_flight) return any;
    auto& columns = limited_[group];
    auto it = std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.first == in_flight; });
    if (it == columns.end()) it = columns.insert(it, {in_flight, std::vector<entry>(boundaries_.size())});
    return filled(it->second[begin], begin, end, group, in_flight);
  }
  /// The same without regard to memory: no shares within memory are faster.
  entry& unlimited(std::size_t begin, std::size_t end, std::size_t group) {
    return filled(unlimited_[group * boundaries_.size() + begin], begin, end, group, 0);
  }
  /// No memory for one microbatch: none for longer stages either.
  bool may_hold(std::size_t begin, std::size_t end, std::size_t group) {
    return unlimited(begin, end, group).placed.most_in_flight >= 1 || costs_.has_room(boundaries_[begin], boundaries_[end], group, 1);
  }

 private:
  entry& filled(entry& e, std::size_t begin, std::size_t end, std::size_t group, int in_flight) {
    if (e.end != end) e = {end, costs_.place(boundaries_[begin], boundaries_[end], group, in_flight)};
    return e;
  }

  const candidate_costs& costs_;
  const std::vector<std::size_t>& boundaries_;
  std::vector<entry>& unlimited_;                                         ///< most questions need no other
  std::vector<std::vector<std::pair<int, std::vector<entry>>>> limited_;  ///< by group, microbatches in flight, begin
};

}  // namespace HETPLAN_NAMESPACE::partition
