// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Queues on the page of serving: who had how many requests waiting when.

#include <string>

#include <hetplan/draw/serving_view.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// A row for each server or, of many, for a few neighbours the fullest of which is shown; faults and changes go through all rows.
/// @return  "" where the history does not say, or nobody ever waited.
[[nodiscard]] std::string queue_map(const serving_view& view);

}  // namespace HETPLAN_NAMESPACE::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/serving_queues.ipp>
#endif
