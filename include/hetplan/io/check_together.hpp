// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a model file and a cluster file must agree on.

#include <optional>
#include <string_view>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/work.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::io {

/// Every layer can be timed on every device: by a profile for the device's kind, else by FLOP and compute;
/// where the mode is given, it can run the model (see check_mode), and in training that profile has a backward.
///
/// @param file  the cluster's, for messages.
/// Throws       invalid_input, as in `home.json: /devices/2/compute: expected FLOP/s > 0, got nothing: ...`.
void check_together(const planning_graph& model, const cluster& c, std::string_view file, std::optional<mode> mode = {});

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/check_together.ipp>
#endif
