// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/ledger.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE std::size_t ledger::number_of(const plan& p) {
  const auto it = std::find(out_.plans.begin(), out_.plans.end(), p);
  if (it != out_.plans.end()) return static_cast<std::size_t>(it - out_.plans.begin());
  out_.plans.push_back(p);
  return out_.plans.size() - 1;
}

HETPLAN_INLINE void ledger::ran(double start_s, std::size_t plan, long long count, const iteration& each, bool violates) {
  enter({activity::running, start_s, start_s + static_cast<double>(count) * each.took_s, plan, count, each.response_s, 0, violates},
        each.device_J, static_cast<double>(count), each.took_s);
  out_.iterations += count;
  if (violates) out_.violations += count;
}

HETPLAN_INLINE void ledger::passed(activity what, double start_s, double end_s, std::size_t plan, std::span<const double> device_J) {
  enter({what, start_s, end_s, plan, 0, 0, 0, false}, device_J, 1);
  if (what == activity::stalled || what == activity::migrating) out_.stall_s += end_s - start_s;
  if (what == activity::cut_off) ++out_.cut_off;
}

HETPLAN_INLINE void ledger::lose(long long count) {
  out_.iterations -= count;
  out_.lost += count;
}

HETPLAN_INLINE void ledger::moved(double volume_bytes, std::span<const double> device_J) {
  out_.moved_bytes += volume_bytes;
  charge(device_J, 1, nullptr);
}

HETPLAN_INLINE void ledger::enter(stretch s, std::span<const double> device_J, double times, double each_s) {
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

HETPLAN_INLINE void ledger::charge(std::span<const double> device_J, double times, stretch* s) {
  for (std::size_t d = 0; d < device_J.size(); ++d) {
    out_.device_energy_J[d] += times * device_J[d];
    out_.energy_J += times * device_J[d];
    if (s != nullptr) s->energy_J += times * device_J[d];
  }
}

HETPLAN_INLINE bool ledger::alike(const stretch& a, const stretch& b) {
  return a.what == b.what && a.what != activity::cut_off && a.plan == b.plan && a.response_s == b.response_s && a.violates == b.violates;
}

}  // namespace HETPLAN_NAMESPACE::adapt
