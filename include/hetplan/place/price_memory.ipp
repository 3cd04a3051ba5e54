// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/price_memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include <hetplan/place/compose_parts.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/relaxed_placement.hpp>

namespace HETPLAN_NAMESPACE::place {

namespace detail {

/// By kind and pair of devices: choices x devices, what the inside and the exit hold there.
[[nodiscard]] HETPLAN_INLINE std::vector<std::vector<std::vector<double>>> bytes_of_choices(const known_parts& known) {
  const std::size_t d = known.table().devices();
  std::vector<std::vector<std::vector<double>>> all;
  for (const part_kind& kind : known.kinds()) {
    auto& of_kind = all.emplace_back();
    const std::vector<double> held = shared_out_bytes(kind.data);
    for (const part_between& b : kind.between) {
      auto& of_pair = of_kind.emplace_back((1 + b.elsewhere.size()) * d, 0.0);
      for (std::size_t c = 0; c <= b.elsewhere.size(); ++c) {
        const operator_schedule& s = b.schedule(c);
        for (std::size_t i = kind.like.entry; i < s.device.size(); ++i) of_pair[c * d + s.device[i]] += held[i];
      }
    }
  }
  return all;
}

/// The bound at some prices.
///
/// @param load   what the parts of the path hold, in their programs' solutions.
/// @param bases  of the programs at other prices, by kind and pair of devices.
[[nodiscard]] HETPLAN_INLINE double bound_at(known_parts& known, const std::vector<double>& price, std::vector<double>& load,
                                             std::map<std::pair<std::size_t, std::size_t>, std::vector<lp_basis>>& bases) {
  const placement_table& t = known.table();
  const std::size_t d = t.devices();
  const auto cheapest = [&](double bytes) { return bytes * *std::min_element(price.begin(), price.end()); };
  std::vector<std::vector<relaxed_bound>> at(known.kinds().size());
  std::vector<std::vector<char>> asked(known.kinds().size());
  for (std::size_t i = 0; i < known.kinds().size(); ++i) {
    double least = 0;
    const std::vector<double> held = shared_out_bytes(known.kinds()[i].data);
    for (std::size_t j = known.kinds()[i].like.entry; j < held.size(); ++j) least += cheapest(held[j]);
    for (const part_between& b : known.kinds()[i].between) at[i].push_back({.bound_s = b.lower_s + least});
    asked[i].assign(known.kinds()[i].between.size(), 0);
  }
  part_path path;
  for (bool any = true; any && known.steps_left() > 0;) {
    path = known.shortest([&](std::size_t part, std::size_t b, std::size_t) { return at[known.kind_of(part)][b].bound_s; });
    any = false;
    for (std::size_t i = 0; i < path.steps.size(); ++i) {
      const part_kind& kind = known.kind(i);
      const std::size_t b = known.pair_of(kind, path.steps[i]);
      if (asked[known.kind_of(i)][b]) continue;
      asked[known.kind_of(i)][b] = 1;
      any = true;
      std::vector<lp_basis>& start = bases[{known.kind_of(i), b}];
      relaxed_bound bound = relax_placement(known.table_between(kind, b), known.rules(), std::numeric_limits<double>::infinity(),
                                            known.options().lp, {.byte_price = price, .start = std::move(start)});
      start = std::move(bound.bases);
      known.spend(bound.steps);
      bound.bound_s = std::max(bound.bound_s, at[known.kind_of(i)][b].bound_s);
      at[known.kind_of(i)][b] = std::move(bound);
    }
  }
  double bound_s = path.length_s;
  for (const std::size_t v : known.series().sides) bound_s += cheapest(t.shared_out_bytes(v));
  for (std::size_t k = 0; k < d; ++k) {
    if (price[k] > 0) bound_s -= price[k] * t.capacity_bytes(k);
  }
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    const part_kind& kind = known.kind(i);
    const auto& held = at[known.kind_of(i)][known.pair_of(kind, path.steps[i])].held_bytes;
    for (std::size_t k = 0; k < held.size(); ++k) load[k] += held[k];
  }
  return bound_s;
}

}  // namespace detail

HETPLAN_INLINE priced_schedule schedule_by_prices(known_parts& known, double length_s) {
  constexpr int rounds = 200;
  const placement_table& t = known.table();
  const std::size_t d = t.devices();
  const double held = t.all_held_bytes();
  known.add_elsewhere();
  const auto bytes = detail::bytes_of_choices(known);
  // A price moves by a step that shrinks when it has gone too far.
  std::vector<double> price(d, 0), step(d, length_s / held / 4), before(d, 0);
  std::vector<std::size_t> nearest;  // devices of the path that exceeds memory least
  double least_excess = std::numeric_limits<double>::infinity();
  priced_schedule answer{.schedule = {.status = {outcome::none_found, "memory: no path of parts that fits was found"}}};
  operator_schedule& best = answer.schedule;
  for (int round = 0; round < rounds && (round == 0 || known.steps_left() > 0); ++round) {
    known.spend(known.steps_of_path() * static_cast<long long>(d));
    // Parts that are alike would all change their devices at once: prices are tilted along the path, so that one after another does.
    const auto tilted = [&](std::size_t part, std::size_t k) {
      const double along = static_cast<double>(part) / static_cast<double>(known.parts().size()) - 0.5;
      return price[k] * (1 + 0.2 * along * (2 * static_cast<double>(k) / static_cast<double>(std::max<std::size_t>(1, d - 1)) - 1));
    };
    const part_path path = known.shortest(
        [&](std::size_t part, std::size_t pair, std::size_t choice) {
          double sum = known.kind(part).between[pair].schedule(choice).makespan_s;
          const double* held_by = &bytes[known.kind_of(part)][pair][choice * d];
          for (std::size_t k = 0; k < d; ++k) sum += tilted(part, k) * held_by[k];
          return sum;
        },
        true);
    const operator_schedule s = compose_parts(known, path);
    const std::vector<double> excess = excess_bytes(t, s.device);
    const double over = std::accumulate(excess.begin(), excess.end(), 0.0, [](double sum, double x) { return sum + std::max(0.0, x); });
    if (over <= 0 && s.makespan_s < best.makespan_s) {
      operator_schedule whole = schedule_sides(known, s);
      if (whole.makespan_s < best.makespan_s) best = std::move(whole);
    }
    if (over > 0 && over < least_excess) {
      least_excess = over;
      nearest = s.device;
      answer.price = price;
    }
    for (std::size_t k = 0; k < d; ++k) {
      if (!std::isfinite(excess[k])) continue;
      if (before[k] * excess[k] < 0) step[k] /= 2;
      else step[k] *= 1.1;
      price[k] = std::max(0.0, price[k] + (excess[k] > 0 ? step[k] : -step[k]));
      before[k] = excess[k];
    }
  }
  if (known.series().exact() && !nearest.empty()) {
    operator_schedule repaired = schedule_within_memory(t, known.rules(), {t.order().begin(), t.order().end()}, nearest);
    if (repaired.makespan_s < best.makespan_s) best = std::move(repaired);
  }
  return answer;
}

HETPLAN_INLINE double bound_by_prices(known_parts& known, std::vector<double> price) {
  constexpr int rounds = 12;
  const placement_table& t = known.table();
  const std::size_t d = t.devices();
  double best_s = 0;
  std::vector<double> step(d, *std::max_element(price.begin(), price.end()) / 8), before(d, 0);
  std::map<std::pair<std::size_t, std::size_t>, std::vector<lp_basis>> bases;
  for (int round = 0; round < rounds && known.options().lp.exists() && known.steps_left() > 0; ++round) {
    std::vector<double> load(d, 0);
    const double bound_s = detail::bound_at(known, price, load, bases);
    best_s = std::max(best_s, bound_s);
    for (std::size_t k = 0; k < d; ++k) {
      const double excess = load[k] - t.capacity_bytes(k);
      if (!std::isfinite(excess)) continue;
      if (before[k] * excess < 0) step[k] /= 2;
      price[k] = std::max(0.0, price[k] + (excess > 0 ? step[k] : -step[k]));
      before[k] = excess;
    }
  }
  return best_s;
}

}  // namespace HETPLAN_NAMESPACE::place
