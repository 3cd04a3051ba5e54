// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Preemptive one-machine relaxation, the core of many scheduling bounds.

#include <span>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// Job of one machine: released at `head_s`, `work_s` on the machine, followed by `tail_s` elsewhere.
struct machine_job {
  double head_s = 0;
  double work_s = 0;
  double tail_s = 0;
};

/// Returns the least possible max(end + tail) of jobs that share a machine in any way, split and in parallel.
///
/// Largest tail first with preemption attains it: the value is least head + total work + least tail of some set of jobs,
/// which no sharing can beat.
/// Complexity  O(n log n) without memory of its own: `jobs` is the working storage, and its order is lost.
/// Source      Jackson's preemptive schedule; Carlier 1982.
[[nodiscard]] double preemptive_machine_bound(std::span<machine_job> jobs);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/solve/preemptive_machine.ipp>
#endif
