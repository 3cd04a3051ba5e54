// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which models a mode can run.

#include <optional>
#include <string>

#include <hetplan/cost/work.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

namespace detail {

/// Why the mode cannot run the model, in words; nothing where it can.
[[nodiscard]] std::optional<std::string> mode_fault(const planning_graph& model, mode how);

}  // namespace detail

/// A step of generation makes one token of each sequence, so that the amounts of the model are those of one token. A model that is
/// described by more tokens per sample would count each token as so many. Problems, plans, tables and bounds all ask here.
///
/// Throws  invalid_input (generation, and the model has more than one token per sample).
void check_mode(const planning_graph& model, mode how);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cost/check_mode.ipp>
#endif
