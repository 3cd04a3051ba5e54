// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/region_bounds.hpp>

#include <algorithm>
#include <vector>

namespace HETPLAN_NAMESPACE::partition::detail {

HETPLAN_INLINE region_bounds::region_bounds(const region_cells& cells, region_use use, region_cost cost, int microbatches, double best_s)
    : n_(cells.regions()), positions_(cells.positions()) {
  make_reach(cells, best_s);
  make_fill(cells, use, cost == region_cost::printed ? 0 : microbatches, best_s);
}

HETPLAN_INLINE void region_bounds::make_reach(const region_cells& cells, double best_s) {
  const std::size_t N = positions_, sets = std::size_t{1} << n_;
  // reach[g][l]: the furthest end of a run of g that begins at l or before; start[g][l]: the earliest begin of one that ends at l or
  // behind.
  std::vector<std::size_t> reach(n_ * (N + 1)), start(n_ * (N + 1));
  for (std::size_t g = 0; g < n_; ++g) {
    for (std::size_t l = 0; l <= N; ++l) reach[g * (N + 1) + l] = start[g * (N + 1) + l] = l;
    for (std::size_t i = 0; i < N; ++i) {
      for (std::size_t j = i + 1; j <= N; ++j) {
        if (cells.work_s(g, i, j) >= best_s) continue;
        auto& r = reach[g * (N + 1) + i];
        auto& s = start[g * (N + 1) + j];
        r = std::max(r, j);
        s = std::min(s, i);
      }
    }
    for (std::size_t l = 1; l <= N; ++l) reach[g * (N + 1) + l] = std::max(reach[g * (N + 1) + l], reach[g * (N + 1) + l - 1]);
    for (std::size_t l = N; l-- > 0;) start[g * (N + 1) + l] = std::min(start[g * (N + 1) + l], start[g * (N + 1) + l + 1]);
  }
  furthest_.assign(sets, 0);
  earliest_.assign(sets, N);
  for (std::size_t set = 1; set < sets; ++set) {
    for (std::size_t g = 0; g < n_; ++g) {
      if ((set >> g & 1U) == 0) continue;
      const std::size_t rest = set & ~(std::size_t{1} << g);
      furthest_[set] = std::max(furthest_[set], reach[g * (N + 1) + furthest_[rest]]);
      earliest_[set] = std::min(earliest_[set], start[g * (N + 1) + earliest_[rest]]);
    }
  }
}

HETPLAN_INLINE void region_bounds::make_fill(const region_cells& cells, region_use use, int link_turns, double best_s) {
  const std::size_t N = positions_;
  std::vector<region_cells::label> by_stages((n_ + 1) * N, {region_cells::inf, region_cells::inf});
  std::vector<double> link_s(n_ * N, region_cells::inf);
  by_stages[0] = {0, 0};
  for (std::size_t g = 0; g < n_; ++g) {
    for (std::size_t h = 0; h < n_; ++h) {
      for (std::size_t j = 1; j < N; ++j) link_s[g * N + j] = std::min(link_s[g * N + j], cells.transfer_s(g, h, j));
    }
  }
  for (std::size_t k = 1; k < n_; ++k) {
    for (std::size_t g = 0; g < n_; ++g) {
      for (std::size_t i = k - 1; i < N; ++i) {
        const region_cells::label so_far = by_stages[(k - 1) * N + i];
        if (so_far.eq1 >= best_s) continue;
        for (std::size_t j = i + 1; j < N; ++j) {
          if (so_far.eq1 + cells.work_s(g, i, j) >= best_s) continue;
          const double f = cells.forward_s(g, i, j), c = link_s[g * N + j];
          if (link_turns > 0 && so_far.all + f + link_turns * c >= best_s) continue;
          region_cells::label& least = by_stages[k * N + j];
          least.eq1 = std::min(least.eq1, so_far.eq1 + c + std::max(f, c));
          least.all = std::min(least.all, so_far.all + f + c);
        }
      }
    }
  }
  before_s_.assign(n_ * N, {region_cells::inf, region_cells::inf});
  for (std::size_t others = 0; others < n_; ++others) {
    for (std::size_t l = 0; l < N; ++l) {
      region_cells::label& least = before_s_[others * N + l];
      for (std::size_t k = use == region_use::all ? others : 0; k <= others; ++k) {
        least.eq1 = std::min(least.eq1, by_stages[k * N + l].eq1);
        least.all = std::min(least.all, by_stages[k * N + l].all);
      }
    }
  }
}

}  // namespace HETPLAN_NAMESPACE::partition::detail
