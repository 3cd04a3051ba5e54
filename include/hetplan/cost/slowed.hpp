// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A cost model seen through devices that work at a factor of their speed.

#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/cost/any_cost_model.hpp>
#include <hetplan/cost/cost_model.hpp>

namespace HETPLAN_NAMESPACE {

/// Every answer of the model, divided by the device's factor. Factors by device id, above 0.
///
/// Source  semantics, section 10: a device at half its speed takes twice as long for everything.
template <cost_model Cost>
struct slowed {
  static_assert(check_cost_model<Cost>());
  Cost cost;
  std::vector<double> factor;

  [[nodiscard]] seconds time(const work& w, const device& d) const { return cost.time(w, d) / factor[d.id.index()]; }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const
    requires times_optimizer_step<Cost>
  {
    return cost.optimizer_step(l, d) / factor[d.id.index()];
  }
  [[nodiscard]] bool times_optimizer() const
    requires requires(const Cost& c) { c.times_optimizer(); }
  {
    return cost.times_optimizer();
  }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const
    requires times_boundary<Cost>
  {
    return cost.boundary(before, after, k, d) / factor[d.id.index()];
  }
  [[nodiscard]] bool times_boundaries() const
    requires requires(const Cost& c) { c.times_boundaries(); }
  {
    return cost.times_boundaries();
  }
  [[nodiscard]] double largest_batch(const work& w, const device& d) const
    requires limits_batches<Cost>
  {
    return cost.largest_batch(w, d);
  }
};

/// The slowed model; an any_cost_model stays one, so that what was compiled for it serves both.
template <cost_model Cost>
[[nodiscard]] auto slow_down(Cost cost, std::vector<double> factor) {
  if constexpr (std::is_same_v<Cost, any_cost_model>) return any_cost_model(slowed<Cost>{std::move(cost), std::move(factor)});
  else return slowed<Cost>{std::move(cost), std::move(factor)};
}

}  // namespace HETPLAN_NAMESPACE
