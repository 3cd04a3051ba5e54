// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/region_chain.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>

namespace hetplan::partition {

namespace detail {

HETPLAN_INLINE region_times region_times_of(const region_chain& chain, std::size_t region, std::size_t i, std::size_t j) {
  const std::size_t first = chain.positions[i], last = j < chain.positions.size() ? chain.positions[j] : chain.layers;
  const region_stage s = chain.stage(region, first, last);
  const std::array parts{s.forward_s, s.backward_s, s.weights_s, s.collective_s};
  if (!std::all_of(parts.begin(), parts.end(), [](double x) { return x >= 0; })) {
    throw invalid_model("region_chain: stage(region " + std::to_string(region) + ", layers [" + std::to_string(first) + ", " +
                        std::to_string(last) + ")) = {" + to_text(parts[0]) + ", " + to_text(parts[1]) + ", " + to_text(parts[2]) + ", " +
                        to_text(parts[3]) + "} s; expected numbers >= 0");
  }
  const double work_s = chain.microbatches * (s.forward_s + s.backward_s + s.weights_s) + s.collective_s;
  return {s.forward_s, work_s, s.fits && std::isfinite(work_s)};
}

HETPLAN_INLINE double checked_transfer_s(const region_chain& chain, std::size_t from, std::size_t to, std::size_t j) {
  const double seconds = chain.transfer_s(from, to, chain.positions[j]);
  if (!(seconds >= 0)) {
    throw invalid_model("region_chain: transfer_s(region " + std::to_string(from) + ", region " + std::to_string(to) + ", layer " +
                        std::to_string(chain.positions[j]) + ") = " + to_text(seconds) + " s; expected a number >= 0");
  }
  return seconds;
}

HETPLAN_INLINE void region_cost_sum::add_stage(double forward_s, double work_s) {
  seconds_ = std::max(seconds_, fill_s_ + work_s);
  forward_s_ = forward_s;
}

HETPLAN_INLINE void region_cost_sum::add_transfer(double transfer_s) {
  if (cost_ == region_cost::serial_links) seconds_ = std::max(seconds_, sent_s_ + forward_s_ + microbatches_ * transfer_s);
  sent_s_ += forward_s_ + transfer_s;
  fill_s_ += transfer_s + std::max(forward_s_, transfer_s);
}

HETPLAN_INLINE void require_region_chain(const region_chain& chain, const std::string& who) {
  const auto fail = [&](const std::string& what) { throw invalid_input(who + ": " + what); };
  if (chain.regions == 0) fail("regions = 0; expected an integer >= 1");
  if (chain.microbatches < 1) fail("microbatches = " + std::to_string(chain.microbatches) + "; expected an integer >= 1");
  const auto& p = chain.positions;
  if (p.empty() || p.front() != 0) fail("positions do not begin with 0");
  if (std::adjacent_find(p.begin(), p.end(), std::greater_equal<>()) != p.end()) fail("positions do not ascend");
  if (p.back() >= chain.layers) {
    fail("the last position, " + std::to_string(p.back()) + ", is none of " + std::to_string(chain.layers) + " layers");
  }
  if (!chain.stage || !chain.transfer_s) fail("stage and transfer_s must be callable");
}

}  // namespace detail

HETPLAN_INLINE double region_split_seconds(const region_chain& chain, const region_split& split, region_cost cost) {
  const std::string who = "region_split_seconds";
  detail::require_region_chain(chain, who);
  const std::size_t stages = split.first.size();
  if (stages == 0 || split.region.size() != stages || split.first.front() != 0) {
    throw invalid_input(who + ": expected stages from layer 0 on, each with its region");
  }
  std::vector<bool> used(chain.regions, false);
  std::vector<std::size_t> at;
  for (std::size_t s = 0; s < stages; ++s) {
    const auto position = std::lower_bound(chain.positions.begin(), chain.positions.end(), split.first[s]);
    if (position == chain.positions.end() || *position != split.first[s] || (s > 0 && split.first[s] <= split.first[s - 1])) {
      throw invalid_input(who + ": stage " + std::to_string(s) + " begins with layer " + std::to_string(split.first[s]) +
                          "; expected a position behind the stage before");
    }
    at.push_back(static_cast<std::size_t>(position - chain.positions.begin()));
    const std::size_t g = split.region[s];
    if (g >= chain.regions || used[g]) {
      throw invalid_input(who + ": stage " + std::to_string(s) + " runs in region " + std::to_string(g) + "; expected one of the " +
                          std::to_string(chain.regions) + " that runs no other");
    }
    used[g] = true;
  }
  at.push_back(chain.positions.size());
  detail::region_cost_sum sum(cost, chain.microbatches);
  for (std::size_t s = 0; s < stages; ++s) {
    const detail::region_times t = detail::region_times_of(chain, split.region[s], at[s], at[s + 1]);
    sum.add_stage(t.forward_s, t.limited_work_s());
    if (s + 1 < stages) sum.add_transfer(detail::checked_transfer_s(chain, split.region[s], split.region[s + 1], at[s + 1]));
  }
  return sum.seconds();
}

}  // namespace hetplan::partition
