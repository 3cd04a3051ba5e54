// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placements that keep the devices' memory: found from nothing, or from one that does not.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/place/placement_table.hpp>

namespace HETPLAN_NAMESPACE::place {

struct fitting {
  std::vector<std::size_t> device = {};  ///< by operator; empty: none was found
  std::string reason = {};               ///< why there is none; "": it is not known whether there is one
};

/// Why no placement can be, as far as operators one by one and all together tell: one that no device can run or hold, or more bytes than
/// there are. "": that is not so.
///
/// Complexity  O(operators x devices).   Source  ours.
[[nodiscard]] std::string reason_against_any_placement(const placement_table& t);

/// The same after every placement has been tried: whether memory or routes forbid them, or both together.
[[nodiscard]] std::string reason_after_all_placements(const placement_table& t);

/// Any placement within memory: operators by falling size, each on the device with most room left, then a depth-first search.
///
/// @param most_nodes  of the search.
/// @return            the reason where none can be: an operator fits no device that can run it, all operators hold more than all devices
///                    have, or the search came to its end.
/// Complexity         O(operators x devices) where sizes go in easily; bin packing otherwise, up to most_nodes.
/// Source             ours: memory may be full to the byte (Moirai's example-1), where list schedules run into a dead end.
[[nodiscard]] fitting find_fitting_placement(const placement_table& t, long long most_nodes = 200'000);

/// A placement within memory from one that exceeds it: while a device is over its capacity, the operator whose move costs least time
/// for each byte that it frees goes to a device with room; or two operators change places. Then, if need be, find_fitting_placement.
///
/// @param device  of each operator, on devices that can run them.
/// Complexity     O(moves x operators of a device x devices); swaps are tried for up to 200 operators of a device.
/// Source         ours: the list schedulers' papers have no memory (HEFT, GETF) or no way back (m-ETF, m-SCT).
[[nodiscard]] fitting repair_memory(const placement_table& t, std::vector<std::size_t> device);

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/fit_memory.ipp>
#endif
