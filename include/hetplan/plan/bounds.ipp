// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/bounds.hpp>

namespace HETPLAN_NAMESPACE {

HETPLAN_INLINE seconds path_bound(const planning_graph& model, const layer_minima& m, mode how) {
  const bool training = how == mode::training;
  std::vector<double> there(model.size(), 0), back(model.size(), 0);
  double longest = 0;
  for (const layer& l : model.layers()) {
    double before = 0, turning = 0;
    for (const std::uint32_t e : model.in_edges(l.id)) {
      const layer_edge& edge = model.edges()[e];
      before = std::max(before, there[edge.from.index()]);
      if (edge.gradient.value() > 0) turning = std::max(turning, back[edge.from.index()]);
    }
    const std::size_t i = l.id.index();
    there[i] = before + m.forward_s[i];
    back[i] = std::max(before, turning) + m.forward_back_s[i];
    longest = std::max(longest, training ? std::max(there[i], back[i]) : there[i]);
  }
  return seconds(longest);
}

namespace detail {

HETPLAN_INLINE double lagrangian_bound(const std::vector<layer_class>& classes, const std::vector<double>& u, const std::vector<double>& v,
                                       const std::vector<double>& capacity) {
  double bound = 0;
  for (const layer_class& k : classes) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < u.size(); ++d) least = std::min(least, u[d] * k.time_s[d] + v[d] * k.bytes);
    bound += k.count * least;
  }
  for (std::size_t d = 0; d < v.size(); ++d) bound -= v[d] * capacity[d];
  return bound;
}

}  // namespace detail

}  // namespace HETPLAN_NAMESPACE
