// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Options of a job over a timeline beside its policy, and what its observers are told.

#include <hetplan/adapt/failure_detector.hpp>
#include <hetplan/adapt/history.hpp>
#include <hetplan/adapt/weight_keeper.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// Source  semantics, section 10.
template <failure_detector Detector = heartbeat>
struct run_options {
  Detector detector = {};
  storage_options storage = {};
  /// Runs, waits and questions to the policy, beside sixteen for each event of the timeline. Backups and policies that ask to be
  /// asked make work without events: years of it would have no end.
  long long steps = 1'000'000;
};
template <class Detector>
run_options(Detector, storage_options) -> run_options<Detector>;

/// The job has come this far; for progress and for stopping.
struct run_progress {
  seconds now;
  seconds duration;
  const history& so_far;
};

}  // namespace HETPLAN_NAMESPACE::adapt
