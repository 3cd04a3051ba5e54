// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What `adapt` prints with --json.

#include <span>
#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/policy_history.hpp>

namespace hetplan::io {

struct adapt_results_options {
  std::size_t max_stretches = 10'000;  ///< of one policy; where more are left, none is written
};

/// `adapt --json`: an object per policy, in the order given; docs/reference/files.md lists the keys.
///
/// @param rows  valid histories of this cluster: finite numbers, plans of `model`.
[[nodiscard]] std::string write_histories(std::span<const policy_history> rows, const planning_graph& model, const cluster& c,
                                          const adapt_results_options& options = {});

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/adapt_results_json.ipp>
#endif
