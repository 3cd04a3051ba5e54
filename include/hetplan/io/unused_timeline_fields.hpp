// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a timeline file says and a run over it does not look at.

#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/problem/job.hpp>

namespace hetplan::io {

/// The parts of a timeline that change nothing, each as a line `FILE: /pointer: why; not used`, in the order of the file; all events from
/// the end on are one line.
///
/// @param n           the timeline in its file, which has been read.
/// @param priorities  may a plan that runs look at priorities of transfers?
/// Source             docs/reference/files.md, hetplan/timeline/1.
[[nodiscard]] std::vector<std::string> unused_timeline_fields(const json_node& n, const cluster& c, const job& j, bool priorities = true);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/unused_timeline_fields.ipp>
#endif
