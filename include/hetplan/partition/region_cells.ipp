// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/region_cells.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>

namespace hetplan::partition::detail {

HETPLAN_INLINE region_cells::region_cells(const region_chain& chain, region_cost cost, std::vector<std::size_t> regions)
    : cost_(cost), microbatches_(chain.microbatches), regions_(std::move(regions)), positions_(chain.positions.size()),
      row_(positions_ + 1) {
  const std::size_t n = regions_.size();
  forward_s_.resize(n * positions_ * row_, inf);
  work_s_.resize(n * positions_ * row_, inf);
  least_work_s_.resize(n * positions_ * row_, inf);
  for (std::size_t g = 0; g < n; ++g) {
    for (std::size_t i = 0; i < positions_; ++i) {
      for (std::size_t j = i + 1; j <= positions_; ++j) {
        const region_times t = region_times_of(chain, regions_[g], i, j);
        forward_s_[at(g, i) + j] = t.forward_s;
        work_s_[at(g, i) + j] = t.limited_work_s();
      }
      double least = inf;
      for (std::size_t j = positions_ + 1; j-- > i + 1;) least_work_s_[at(g, i) + j] = least = std::min(least, work_s(g, i, j));
    }
  }
  transfer_s_.resize(n * n * positions_, inf);
  for (std::size_t g = 0; g < n; ++g) {
    for (std::size_t h = 0; h < n; ++h) {
      for (std::size_t j = 1; g != h && j < positions_; ++j) {
        transfer_s_[(g * n + h) * positions_ + j] = checked_transfer_s(chain, regions_[g], regions_[h], j);
      }
    }
  }
}

HETPLAN_INLINE region_cells::step region_cells::trace(std::size_t g, std::size_t i, const std::vector<successor>& behind, bool last,
                                                      label made) const {
  if (last && work_s(g, i, positions_) == made.eq1 && made.all == made.eq1) return {positions_, 0, {}};
  for (std::size_t j = i + 1; j < positions_; ++j) {
    if (work_s(g, i, j) > made.eq1) continue;
    for (std::size_t s = 0; s < behind.size(); ++s) {
      step found{positions_, s, {}};
      behind[s].behind->each(j, [&](const label& l) {
        if (extended(option_of(g, behind[s].region, j, l), work_s(g, i, j), forward_s(g, i, j)) == made) found = {j, s, l};
      });
      if (found.position == j) return found;
    }
  }
  constexpr bool label_has_an_origin = false;
  HETPLAN_ASSERT(label_has_an_origin);
  return {};
}

HETPLAN_INLINE region_cells::option region_cells::option_of(std::size_t g, std::size_t h, std::size_t j, const label& l) const {
  const double c = transfer_s(g, h, j), one = c + l.eq1;
  if (cost_ == region_cost::printed) return {one, c + one, 0};
  return {one, c + one, std::max(microbatches_ * c, c + l.all)};
}
HETPLAN_INLINE void region_cells::gather(std::size_t g, std::size_t from, const std::vector<successor>& behind) {
  options_.clear();
  option_begin_.assign(positions_ + 1, 0);
  least_two_.assign(positions_, inf);
  last_option_ = 0;
  for (std::size_t j = from; j < positions_; ++j) {
    const std::size_t begin = options_.size();
    option_begin_[j] = static_cast<std::uint32_t>(begin);
    for (const successor& s : behind) {
      s.behind->each(j, [&](const label& l) {
        const option o = option_of(g, s.region, j, l);
        if (o.two == inf) return;
        const auto no_worse = [](const option& a, const option& b) { return a.one <= b.one && a.two <= b.two && a.links <= b.links; };
        const auto mine = options_.begin() + static_cast<std::ptrdiff_t>(begin);
        if (std::any_of(mine, options_.end(), [&](const option& a) { return no_worse(a, o); })) return;
        options_.erase(std::remove_if(mine, options_.end(), [&](const option& b) { return no_worse(o, b); }), options_.end());
        options_.push_back(o);
      });
    }
    option_begin_[j + 1] = static_cast<std::uint32_t>(options_.size());
    least_two_[j] = least_two_[j - 1];
    for (std::size_t o = begin; o < options_.size(); ++o) least_two_[j] = std::min(least_two_[j], options_[o].two);
    if (options_.size() > begin) last_option_ = j + 1;
  }
}

HETPLAN_INLINE void region_cells::insert(std::vector<label>& found, label l) {
  const auto next = std::lower_bound(found.begin(), found.end(), l.eq1, [](const label& a, double eq1) { return a.eq1 < eq1; });
  if (next != found.end() && next->eq1 == l.eq1 && next->all <= l.all) return;
  if (next != found.begin() && (next - 1)->all <= l.all) return;
  auto worse = next;
  while (worse != found.end() && worse->all >= l.all) ++worse;
  found.insert(found.erase(next, worse), l);
}

}  // namespace hetplan::partition::detail
