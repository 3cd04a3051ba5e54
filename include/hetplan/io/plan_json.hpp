// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plans as files: hetplan/plan/1.

#include <string>

#include <hetplan/io/json_text.hpp>
#include <hetplan/io/plan_reader.hpp>

namespace HETPLAN_NAMESPACE::io {

/// Reads a plan file for a model and a cluster, and validates the plan.
///
/// `predicted` has no busy times and no bytes: those are 0 in what is read.
/// Throws  invalid_input `FILE: /pointer: expected X, got Y` for whatever docs/reference/files.md calls bad input, an order that
///         can never finish included.
[[nodiscard]] plan read_plan(const json_document& d, const planning_graph& model, const cluster& c);

namespace detail {

json write_evaluation_by_device(const evaluation& e, const cluster& c, double (*number)(const device_evaluation&));
json write_energy(const evaluation& e, const cluster& c);
json write_peak_memory(const evaluation& e, const cluster& c);
/// The bounds, and in generation the time between tokens.
void put_bounds(json& o, const evaluation& e);

json plan_json(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace detail

/// The plan file of a valid plan; reading it gives the plan again (of `predicted`, what the file holds).
[[nodiscard]] std::string write_plan(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace HETPLAN_NAMESPACE::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/plan_json.ipp>
#endif
