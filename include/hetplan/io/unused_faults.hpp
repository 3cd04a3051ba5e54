// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Faults of what is gone already.

#include <string>
#include <vector>

#include <hetplan/io/json_node.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/serving_faults.hpp>

namespace hetplan::io {

/// The faults that take away what an earlier one has taken, each as a line `FILE: /pointer: why; not used`, in the order of the file:
/// nothing is repaired.
///
/// @param n    the faults in their file, which has been read.
/// @param all  those faults.
/// Source      docs/reference/serving-files.md, hetplan/faults/1; semantics, section 11.
[[nodiscard]] std::vector<std::string> unused_faults(const json_node& n, const std::vector<serve::serving_fault>& all,
                                                     const serve::edge_cloud& cloud);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/unused_faults.ipp>
#endif
