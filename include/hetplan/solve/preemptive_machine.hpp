// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The relaxation behind many scheduling bounds: jobs of one machine that may be interrupted.

#include <span>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// A job of a machine: not before `head_s`, `work_s` on the machine, and `tail_s` that follow elsewhere.
struct machine_job {
  double head_s = 0;
  double work_s = 0;
  double tail_s = 0;
};

/// The least possible max(end + tail) of jobs that share a machine in any way, split and side by side.
///
/// Largest tail first, with pre-emption, is optimal for it, and sharing side by side helps nothing: the value is that of
/// some set of jobs, least head + all work + least tail, which no sharing can beat.
/// Complexity  O(n log n), without memory of its own: `jobs` is where it works, and their order is lost.
/// Source      Jackson's preemptive schedule; Carlier 1982.
[[nodiscard]] double preemptive_machine_bound(std::span<machine_job> jobs);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/solve/preemptive_machine.ipp>
#endif
