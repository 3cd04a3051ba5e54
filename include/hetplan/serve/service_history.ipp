// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/service_history.hpp>

namespace hetplan::serve {

HETPLAN_INLINE std::uint64_t service_history::requests() const {
  std::uint64_t sum = 0;
  for (const auto& s : services) sum += s.requests();
  return sum;
}

HETPLAN_INLINE double service_history::credit() const {
  double sum = 0;
  for (const auto& s : services) sum += s.credit;
  return sum;
}

HETPLAN_INLINE double service_history::attainment() const {
  attained sum{.credit = credit()};
  for (const auto& s : services) sum.asked += s.asked;
  return sum.share();
}

HETPLAN_INLINE attained service_history::attained_by(const std::vector<service>& all, bool streams) const {
  attained sum;
  for (std::size_t l = 0; l < all.size(); ++l) {
    if (all[l].is_stream() != streams) continue;
    sum.asked += services[l].asked;
    sum.credit += services[l].credit;
  }
  return sum;
}

HETPLAN_INLINE double service_history::mean_offloads() const {
  double sum = 0;
  double count = 0;
  for (std::size_t h = 0; h < offloads.size(); ++h) {
    sum += static_cast<double>(h) * static_cast<double>(offloads[h]);
    count += static_cast<double>(offloads[h]);
  }
  return count > 0 ? sum / count : 0;
}

HETPLAN_INLINE std::uint64_t service_history::count(request_outcome o) const {
  std::uint64_t sum = 0;
  for (const auto& s : services) sum += s[o];
  return sum;
}

}  // namespace hetplan::serve
