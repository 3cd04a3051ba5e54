// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a job file says and nothing looks at.

#include <string>
#include <vector>

#include <hetplan/io/json_node.hpp>
#include <hetplan/problem/job.hpp>

namespace hetplan::io {

/// What a job is read for.
struct job_use {
  bool over_time = false;         ///< a run over a timeline; else planning alone
  bool latency_may_come = false;  ///< the timeline may ask for one
};

/// The fields of a job that change nothing, each as a line `FILE: /pointer: why; not used`, in the order of the file.
///
/// @param n  the job in its file, which has been read.
/// @param j  the job after what the command line changes about it.
/// Source    docs/reference/files.md, hetplan/job/1.
[[nodiscard]] std::vector<std::string> unused_job_fields(const json_node& n, const job& j, const job_use& use = {});

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/unused_job_fields.ipp>
#endif
