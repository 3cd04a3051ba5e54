// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Keeps a history's ledger: stretches without gaps, every joule and every iteration entered once.

#include <span>
#include <utility>

#include <hetplan/adapt/history.hpp>
#include <hetplan/adapt/iteration.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// Writes a history. Whoever runs a job says what happened; sums are made here only.
/// Source  semantics, section 10, results.
class ledger {
 public:
  explicit ledger(std::size_t devices) { out_.device_energy_J.assign(devices, 0); }

  [[nodiscard]] const history& so_far() const { return out_; }
  [[nodiscard]] history& open() { return out_; }
  [[nodiscard]] history close() && { return std::move(out_); }

  /// The index of a plan, which is new only if it differs from those before.
  [[nodiscard]] std::size_t number_of(const plan& p);

  /// `count` iterations one after another, all alike.
  void ran(double start_s, std::size_t plan, long long count, const iteration& each, bool violates);
  /// Time in which no iteration ended.
  void passed(activity what, double start_s, double end_s, std::size_t plan, std::span<const double> device_J);
  /// Iterations whose weights are gone: done, and to be done again.
  void lose(long long count);
  /// Weights that moved while something else was going on.
  void moved(double volume_bytes, std::span<const double> device_J);

 private:
  void enter(stretch s, std::span<const double> device_J, double times, double each_s = 0);
  void charge(std::span<const double> device_J, double times, stretch* s);
  /// Do they say the same of one stretch? An iteration that was cut off stays by itself.
  [[nodiscard]] static bool alike(const stretch& a, const stretch& b);

  history out_;
  double each_s_ = 0;  ///< how long an iteration of the last stretch takes: in generation more than its response
};

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/ledger.ipp>
#endif
