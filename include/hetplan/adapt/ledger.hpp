// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Keeps a history's books: stretches without gaps, every joule and every iteration entered once.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/history.hpp>
#include <hetplan/adapt/iteration.hpp>

namespace hetplan::adapt {

/// Writes a history. Whoever runs a job says what happened; sums are made here only.
/// Source  semantics, section 10, results.
class ledger {
 public:
  explicit ledger(std::size_t devices) { out_.device_energy_J.assign(devices, 0); }

  [[nodiscard]] const history& so_far() const { return out_; }
  [[nodiscard]] history& open() { return out_; }
  [[nodiscard]] history close() && { return std::move(out_); }

  /// The index of a plan, which is new only if it differs from those before.
  [[nodiscard]] std::size_t number_of(const plan& p) {
    const auto it = std::find(out_.plans.begin(), out_.plans.end(), p);
    if (it != out_.plans.end()) return static_cast<std::size_t>(it - out_.plans.begin());
    out_.plans.push_back(p);
    return out_.plans.size() - 1;
  }

  /// `count` iterations one after another, all alike.
  void ran(double start_s, std::size_t plan, long long count, const iteration& each, bool violates) {
    enter({activity::running, start_s, start_s + static_cast<double>(count) * each.took_s, plan, count, each.response_s, 0, violates},
          each.device_J, static_cast<double>(count), each.took_s);
    out_.iterations += count;
    if (violates) out_.violations += count;
  }
  /// Time in which no iteration ended.
  void passed(activity what, double start_s, double end_s, std::size_t plan, std::span<const double> device_J) {
    enter({what, start_s, end_s, plan, 0, 0, 0, false}, device_J, 1);
    if (what == activity::stalled || what == activity::migrating) out_.stall_s += end_s - start_s;
    if (what == activity::cut_off) ++out_.cut_off;
  }
  /// Iterations whose weights are gone: done, and to be done again.
  void lose(long long count) {
    out_.iterations -= count;
    out_.lost += count;
  }
  /// Weights that moved while something else was going on.
  void moved(double volume_bytes, std::span<const double> device_J) {
    out_.moved_bytes += volume_bytes;
    charge(device_J, 1, nullptr);
  }

 private:
  void enter(stretch s, std::span<const double> device_J, double times, double each_s = 0) {
    if (s.end_s <= s.start_s) return charge(device_J, times, nullptr);
    charge(device_J, times, &s);
    if (!out_.stretches.empty() && alike(out_.stretches.back(), s) && each_s == each_s_) {
      stretch& last = out_.stretches.back();
      last.end_s = s.end_s;
      last.iterations += s.iterations;
      last.energy_J += s.energy_J;
    } else {
      out_.stretches.push_back(s);
      each_s_ = each_s;
    }
  }
  void charge(std::span<const double> device_J, double times, stretch* s) {
    for (std::size_t d = 0; d < device_J.size(); ++d) {
      out_.device_energy_J[d] += times * device_J[d];
      out_.energy_J += times * device_J[d];
      if (s != nullptr) s->energy_J += times * device_J[d];
    }
  }
  /// Do they say the same of one stretch? An iteration that was cut off stays by itself.
  [[nodiscard]] static bool alike(const stretch& a, const stretch& b) {
    return a.what == b.what && a.what != activity::cut_off && a.plan == b.plan && a.response_s == b.response_s && a.violates == b.violates;
  }

  history out_;
  double each_s_ = 0;  ///< how long an iteration of the last stretch takes: in generation more than its response
};

}  // namespace hetplan::adapt
