// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a cluster file says and no plan can make use of.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/io/json_node.hpp>

namespace hetplan::io {

/// The resources that a route between two of its devices takes.
///
/// Complexity  O(devices^2, resources of their routes).
[[nodiscard]] std::set<std::string_view> resources_on_routes(const cluster& c);

/// The fields of a cluster that change no plan of any model, each as a line `FILE: /pointer: why; not used`, in the order of the file.
///
/// @param n  the cluster in its file, which has been read.
/// @param c  that cluster.
/// Source    docs/reference/files.md, hetplan/cluster/1; semantics, section 3.
[[nodiscard]] std::vector<std::string> unused_cluster_fields(const json_node& n, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/unused_cluster_fields.ipp>
#endif
