// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A cost model seen through devices that work at a factor of their speed.

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>

namespace hetplan {

/// Every answer of the model, divided by the device's factor. Factors by device id, above 0.
///
/// Throws  invalid_model where a device has no factor.
/// Source  semantics, section 10: a device at half its speed takes twice as long for everything.
template <cost_model Cost>
struct slowed {
  static_assert(check_cost_model<Cost>());
  Cost cost;
  std::vector<double> factor;

  [[nodiscard]] seconds time(const work& w, const device& d) const { return cost.time(w, d) / factor_of(d); }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const
    requires times_optimizer_step<Cost>
  {
    return cost.optimizer_step(l, d) / factor_of(d);
  }
  [[nodiscard]] bool times_optimizer() const
    requires requires(const Cost& c) { c.times_optimizer(); }
  {
    return cost.times_optimizer();
  }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const
    requires times_boundary<Cost>
  {
    return cost.boundary(before, after, k, d) / factor_of(d);
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

 private:
  [[nodiscard]] double factor_of(const device& d) const {
    if (d.id.index() < factor.size()) return factor[d.id.index()];
    throw invalid_model("slowed: " + std::to_string(factor.size()) + " factors, none for device " + std::to_string(d.id.value) + " \"" +
                        d.name + "\"; expected one for each device of the cluster");
  }
};

/// The slowed model; an any_cost_model stays one, so that what was compiled for it serves both.
template <cost_model Cost>
[[nodiscard]] auto slow_down(Cost cost, std::vector<double> factor) {
  if constexpr (std::is_same_v<Cost, any_cost_model>) return any_cost_model(slowed<Cost>{std::move(cost), std::move(factor)});
  else return slowed<Cost>{std::move(cost), std::move(factor)};
}

}  // namespace hetplan
