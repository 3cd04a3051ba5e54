// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placements that keep the devices' memory: found from nothing, or from one that does not.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/core/status.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

struct fitting {
  hetplan::status status = {};           ///< infeasible: proven; none found: the search was cut off
  std::vector<std::size_t> device = {};  ///< by operator; empty: none was found
};

/// Whether operators one by one and all together leave room for any placement: infeasible where no device can run or hold one of them, or
/// where there are more bytes than room, with the row that proves it.
///
/// Complexity  O(operators x devices).   Source  ours.
[[nodiscard]] status refute_placements(const placement_table& t);

/// Infeasible, after every placement has been tried: whether memory or routes forbid them, or both together.
///
/// @param searched  choices of devices for some operators or all, each looked at, or left out with all that go on from one that was.
[[nodiscard]] status infeasible_after(const placement_table& t, long long searched);

/// The problem of a proof: "placements of 5 operators on 2 devices".
[[nodiscard]] std::string named_problem(const placement_table& t);

/// Any placement within memory: operators by falling size, each on the device with most room left, then a depth-first search.
///
/// @param most_nodes  of the search.
/// @return            infeasible where none can be: see refute_placements, or the search came to its end.
/// Complexity         O(operators x devices) where sizes go in easily; bin packing otherwise, up to most_nodes.
/// Source             ours: memory may be full to the byte (Moirai's example-1), where list schedules run into a dead end.
[[nodiscard]] fitting find_fitting_placement(const placement_table& t, long long most_nodes = 200'000);

/// A placement within memory from one that exceeds it: while a device is over its capacity, the operator whose move costs least time
/// for each byte that it frees goes to a device with room; or two operators change places. Then, if need be, find_fitting_placement.
///
/// @param device  of each operator, on devices that can run them.
/// Complexity     O(moves x operators of a device x devices); swaps are tried for up to 200 operators of a device.
///             Operators that hold a tied tensor move one by one, or all of the device together.
/// Source         ours: the list schedulers' papers have no memory (HEFT, GETF) or no way back (m-ETF, m-SCT).
[[nodiscard]] fitting repair_memory(const placement_table& t, std::vector<std::size_t> device);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/fit_memory.ipp>
#endif
