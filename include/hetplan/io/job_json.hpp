// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Jobs as files: hetplan/job/1.

#include <array>
#include <string_view>
#include <utility>

#include <hetplan/io/json_node.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::io {

inline constexpr std::string_view job_format = "hetplan/job/1";

namespace keys {
inline constexpr std::array<std::string_view, 12> job{"format",           "mode",          "batch",         "microbatch_sizes",
                                                      "optimizer_factor", "memory_savers", "split_tensors", "context",
                                                      "tokens",           "schedule",      "objective",     "qoe"};
inline constexpr std::array<std::string_view, 4> qoe{"latency", "lambda", "deadline", "iterations"};
}  // namespace keys

namespace detail {

inline constexpr std::array<std::pair<std::string_view, mode>, 3> modes{
    {{"training", mode::training}, {"inference", mode::inference}, {"generation", mode::generation}}};

inline constexpr std::array<std::pair<std::string_view, objective_kind>, 4> objectives{{{"latency", objective_kind::latency},
                                                                                        {"throughput", objective_kind::throughput},
                                                                                        {"energy", objective_kind::energy},
                                                                                        {"qoe", objective_kind::qoe}}};

/// The job in an object that has the keys of a job.
[[nodiscard]] job job_of(const json_object& o);

}  // namespace detail

/// What `schedule` may be.
[[nodiscard]] std::vector<std::string_view> schedule_names();

/// Gives a job one more schedule by name.
///
/// @param base  has it 1f1b or gpipe already?
/// @return      what was expected in place of the name, or "".
[[nodiscard]] std::string name_schedule(job& j, std::string_view name, bool& base);

/// Reads a job file.
///
/// Throws  invalid_input `FILE: /pointer: expected X, got Y` for whatever docs/reference/files.md calls bad input.
/// Source  docs/reference/files.md, hetplan/job/1.
[[nodiscard]] inline job read_job(const json_document& d) { return detail::job_of(open_document(d, job_format, keys::job)); }

/// The job file, without what equals a default; reading it gives the identical job.
///
/// Source  docs/reference/files.md, hetplan/job/1.
[[nodiscard]] std::string write_job(const job& j);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/job_json.ipp>
#endif
