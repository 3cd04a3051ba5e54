// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/series_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <hetplan/place/compose_parts.hpp>
#include <hetplan/place/fit_memory.hpp>
#include <hetplan/place/price_memory.hpp>

namespace HETPLAN_NAMESPACE::place {

HETPLAN_INLINE operator_schedule series_schedule(const placement_table& t, const placement_rules& r, const series_parts& parts,
                                                 const series_search_options& options, const any_observer<schedule_improved>& observer) {
  known_parts known(t, r, parts, options);
  if (!known.look())
    return {
        .status = {outcome::none_found, "a budget of " + std::to_string(options.steps) + " steps does not suffice to look at all parts"}};
  const auto fits = [&](const operator_schedule& s) {
    const std::vector<double> excess = excess_bytes(t, s.device);
    return std::none_of(excess.begin(), excess.end(), [](double x) { return x > 0; });
  };
  // Where memory binds, half of the steps are for its prices.
  bool stopped = false;
  for (bool more = true; more && !stopped && known.steps_left() > 0;) {
    known.spend(2 * known.steps_of_path());
    const part_path lower = known.shortest_lower(), upper = known.shortest_upper();
    if (!std::isfinite(lower.length_s) || upper.length_s <= lower.length_s * (1 + 1e-9)) break;
    if (std::isfinite(upper.length_s) && !fits(compose_parts(known, upper))) known.reserve(options.steps / 2);
    more = known.relax(lower) || known.refine({&lower, &upper});
    stopped = std::isfinite(upper.length_s) && observer && observer({upper.length_s, known.steps_used()}) == control::stop;
  }
  const part_path lower = known.shortest_lower(), upper = known.shortest_upper();
  operator_schedule best{.status = {outcome::none_found, "not every part has a schedule yet"}};
  double bound_s = lower.length_s;
  if (!std::isfinite(bound_s)) {
    best.status = infeasible_after(t, known.searched());
  } else if (std::isfinite(upper.length_s)) {
    const operator_schedule all = compose_parts(known, upper);
    if (fits(all)) {
      best = schedule_sides(known, all);
      const part_path turns = known.shortest([&](std::size_t part, std::size_t pair, std::size_t) {
        const part_between& b = known.kind(part).between[pair];
        return b.exhausted ? b.upper_s() : b.lower_s;
      });
      best.exhausted = parts.exact() && turns.length_s >= below(upper.length_s);
    } else {
      priced_schedule priced = schedule_by_prices(known, upper.length_s);
      best = std::move(priced.schedule);
      if (!priced.price.empty()) bound_s = std::max(bound_s, bound_by_prices(known, std::move(priced.price)));
    }
    if (!best.found()) best.status = {outcome::none_found, "the operators beside the parts found no place"};
    if (best.makespan_s <= bound_s * (1 + 1e-9)) bound_s = best.makespan_s;
  }
  best.bound_s = bound_s;
  best.steps = known.steps_used();
  if (stopped) best.status = {outcome::stopped, "an observer stopped the search; the best so far"};
  return best;
}

}  // namespace HETPLAN_NAMESPACE::place
