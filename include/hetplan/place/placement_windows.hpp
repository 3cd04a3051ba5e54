// SPDX-License-Identifier: BSL-1.0
#pragma once
/// When each operator can run on each device, if a program's limit is to be kept.

#include <vector>

#include <hetplan/place/placement_columns.hpp>

namespace HETPLAN_NAMESPACE::place {

/// Each reader of an output is on the device that suits that output best, as if outputs did not meet again. Devices on which an operator
/// leaves no room for the others lose it: their columns are fixed.
///
/// Shapes      head, tail: operators x devices, in the program's unit.
/// Complexity  O(edges x devices^2).   Source  ours; see tails_s.
struct placement_windows {
  explicit placement_windows(placement_columns& c);

  std::vector<double> head;  ///< no sooner does it start
  std::vector<double> tail;  ///< from its start to the end of all at least; infinite: it cannot be there
  double path = 0;           ///< the makespan is no shorter; infinite: nothing keeps the limit
};

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/placement_windows.ipp>
#endif
