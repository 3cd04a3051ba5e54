// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/core/sorting.hpp>

#include <algorithm>
#include <numeric>

namespace hetplan {

HETPLAN_INLINE std::vector<std::size_t> sorted_indices(std::size_t n, index_comparison less) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

}  // namespace hetplan
