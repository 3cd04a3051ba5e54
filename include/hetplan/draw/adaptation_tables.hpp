// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The tables of the adaptation's page: policies side by side, their adoptions with reasons, the plans that ran.

#include <cstddef>
#include <string>

#include <hetplan/draw/adaptation_view.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// One row per policy; the best of each column where one is better than another is bold and says so.
[[nodiscard]] std::string policy_table(const adaptation_view& view, const job& j);

/// What a policy adopted, in order: the first few at once, more behind a fold, the rest counted.
[[nodiscard]] std::string adoption_list(const adaptation_view& view, std::size_t p);

/// "2 stages: block0 … block2 on laptop0; ...".
[[nodiscard]] std::string stages_of(const plan& p, const planning_graph& model, const cluster& c);

/// The plans that ran, by letter, with how long each policy ran them.
[[nodiscard]] std::string plans_table(const adaptation_view& view, const planning_graph& model, const cluster& c);

}  // namespace HETPLAN_NAMESPACE::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/adaptation_tables.ipp>
#endif
