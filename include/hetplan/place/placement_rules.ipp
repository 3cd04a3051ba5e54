// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/placement_rules.hpp>

#include <hetplan/core/linkage.hpp>

namespace hetplan::place {

HETPLAN_INLINE channels::channels(const placement_table& t, contention c) : devices_(t.devices()), first_{0} {
  size_ = c == contention::none ? 0 : c == contention::one_port ? 2 * devices_ : t.resources();
  for (std::size_t from = 0; from < devices_; ++from) {
    for (std::size_t to = 0; to < devices_; ++to) {
      if (from != to && c == contention::one_port) {
        all_.insert(all_.end(), {from, devices_ + to});
      } else if (from != to && c != contention::none) {
        const auto& resources = t.pair(from, to).resources;
        all_.insert(all_.end(), resources.begin(), resources.end());
      }
      first_.push_back(all_.size());
    }
  }
}

}  // namespace hetplan::place
