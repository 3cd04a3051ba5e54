// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/side_by_side.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

#include <hetplan/core/crew.hpp>

namespace hetplan::partition {

HETPLAN_INLINE control search_side_by_side(const search_tables& tables, const std::vector<search_variant>& variants,
                                           const any_objective& objective, const top_k& policy, const search_options& options, int threads,
                                           const search_taker& taker) {
  struct answer {
    search_result found;
    long long most = 0;
  };
  const auto search = [&](const search_variant& v, long long most) {
    search_options mine = options;
    mine.warmup = v.warmup;
    mine.most_extensions = most;
    return answer{two_substate_dp(tables, *v.space, v.blank, objective, policy, mine), most};
  };
  auto allowed = variants.empty() ? std::nullopt : taker.allowance();
  if (!allowed) return control::go;
  std::atomic<long long> most = *allowed;
  numbered_work side_by_side(variants.size(), threads, [&](std::size_t i) { return search(variants[i], most); });
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (i > 0) allowed = taker.allowance();
    if (!allowed) break;
    most = *allowed;
    answer a = side_by_side.take(i);
    if (a.most != *allowed && a.found.counts.extended >= std::min(a.most, *allowed)) a = search(variants[i], *allowed);
    if (taker.take(a.found) == control::stop) return control::stop;
  }
  return control::go;
}

}  // namespace hetplan::partition
