// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/search_context.hpp>

#include <hetplan/core/sorting.hpp>

namespace hetplan::partition {

HETPLAN_INLINE completion_bounds::completion_bounds(const search_tables& t, const device_space& space,
                                                    const std::vector<std::size_t>& boundaries, const plan& blank, bool serial,
                                                    run_part part)
    : columns_(boundaries.size()), size_(blank.microbatch_size), busiest_(space.states() * columns_, 0), path_(busiest_),
      energy_(columns_, 0), stage_(space.groups.size() * columns_, 0) {
  block_times times(t, space, boundaries, static_cast<std::size_t>(std::min(blank.microbatch_size, t.table.max_share())), part);
  add_energy(t, space, times, size_ * blank.microbatches * pass_count(blank.workload, t.model.tokens_per_sample()));
  for (std::size_t g = 0; g < space.groups.size(); ++g) add_group(g, space.groups[g], times);
  const std::vector<double> mean_rates = times.mean_rates();
  if (serial) times.rank();
  for (std::size_t s = 0; s < space.states(); ++s) {
    std::vector<std::size_t> there;
    for (std::size_t c = 0; c < space.classes.size(); ++c) {
      if (space.left[s][c] > 0) there.push_back(c);
    }
    if (there.empty()) continue;
    add_busiest(s, space.left[s], there, times, mean_rates);
    if (serial) add_path(s, space.left[s], times);
  }
}

HETPLAN_INLINE double completion_bounds::stage_s(std::size_t group, std::size_t first, std::size_t last) const {
  return stage_[group * columns_ + last] - stage_[group * columns_ + first];
}

HETPLAN_INLINE completion_bounds::block_times::block_times(const search_tables& t, const device_space& space,
                                                           const std::vector<std::size_t>& boundaries, std::size_t most, run_part part)
    : boundaries_(boundaries), blocks_(t.sequence.size()), classes_(space.classes.size()), most_(most),
      distinct_(prefix_table::which_share(static_cast<int>(most)) + 1), per_sample_(blocks_ * classes_ * distinct_) {
  for (std::size_t c = 0; c < classes_; ++c) {
    const device_id d = space.classes[c].front();
    for (std::size_t s = 0; s < distinct_; ++s) {
      const int share = t.table.samples_of(s);
      for (int g = 1; g <= t.table.degrees(d); ++g) {
        const double *totals = t.table.totals(d, share, g, part), *entries = t.table.entries(d, share, g, part);
        for (std::size_t b = 0; b < blocks_; ++b) {
          double& best = per_sample_[at(b, c, s)];
          if (g == 1) best = s > 0 ? per_sample_[at(b, c, s - 1)] : inf;
          best = std::min(best, std::max(0.0, totals[b + 1] - entries[b] - t.table.overheads_s(d)) / share);
        }
      }
    }
  }
}

HETPLAN_INLINE double completion_bounds::block_times::operator()(std::size_t block, std::size_t of_class, std::size_t m) const {
  return per_sample_[at(block, of_class, prefix_table::which_share(static_cast<int>(m)))];
}

HETPLAN_INLINE std::vector<double> completion_bounds::block_times::mean_rates() const {
  std::vector<double> rates(classes_, 0);
  for (std::size_t c = 0; c < classes_; ++c) {
    for (std::size_t b = 0; b < blocks_; ++b) rates[c] += (*this)(b, c, most_);
    rates[c] = rates[c] > 0 ? 1 / rates[c] : 0;
  }
  return rates;
}

HETPLAN_INLINE void completion_bounds::block_times::rank() {
  ranked_.resize(per_sample_.size());
  for (std::size_t b = 0; b < blocks_; ++b) {
    for (std::size_t s = 0; s < distinct_; ++s) {
      std::size_t to = at(b, 0, 0) + s * classes_;
      const auto faster = [&](std::size_t x, std::size_t y) { return per_sample_[at(b, x, s)] < per_sample_[at(b, y, s)]; };
      for (const std::size_t k : sorted_indices(classes_, faster)) ranked_[to++] = static_cast<std::uint32_t>(k);
    }
  }
}

HETPLAN_INLINE void completion_bounds::add_energy(const search_tables& t, const device_space& space, const block_times& times,
                                                  double samples) {
  times.add_up(energy_.data(), [&](std::size_t b) {
    double cheapest = inf;
    for (std::size_t c = 0; c < space.classes.size(); ++c) {
      cheapest = std::min(cheapest, t.slopes[space.classes[c].front().index()].busy_W * times(b, c, times.most()));
    }
    return samples * cheapest;
  });
}

HETPLAN_INLINE std::size_t completion_bounds::largest_of(std::size_t k, const block_times& times) const {
  const auto size = static_cast<std::size_t>(size_);
  return size > k ? std::min(size - k + 1, times.most()) : 1;
}

HETPLAN_INLINE void completion_bounds::add_group(std::size_t g, const device_space::device_group& group, const block_times& times) {
  std::size_t members = 0;
  for (const auto& p : group) members += static_cast<std::size_t>(p.devices);
  const std::size_t largest = largest_of(members, times);
  times.add_up(&stage_[g * columns_], [&](std::size_t b) {
    double rate = 0;
    for (const auto& p : group) rate += p.devices / times(b, p.of_class, largest);
    return size_ / rate;
  });
}

HETPLAN_INLINE void completion_bounds::add_busiest(std::size_t state, const std::vector<int>& left, const std::vector<std::size_t>& there,
                                                   const block_times& times, const std::vector<double>& weight) {
  double total_weight = 0;
  for (const std::size_t c : there) total_weight += left[c] * weight[c];
  if (total_weight <= 0) return;
  times.add_up(&busiest_[state * columns_], [&](std::size_t b) {
    double least = inf;
    for (const std::size_t c : there) least = std::min(least, weight[c] * times(b, c, times.most()));
    return size_ * least / total_weight;
  });
}

HETPLAN_INLINE void completion_bounds::add_path(std::size_t state, const std::vector<int>& left, const block_times& times) {
  times.add_up(&path_[state * columns_], [&](std::size_t b) {
    double fastest = 0;  // rate of the best group
    for (std::size_t k = 1; k <= static_cast<std::size_t>(size_); ++k) {
      const std::size_t largest = largest_of(k, times);
      double rate = 0;
      int room = static_cast<int>(k);
      for (const std::uint32_t c : times.fastest(b, largest)) {
        if (room == 0) break;
        const int taken = std::min(room, left[c]);
        if (taken > 0) rate += taken / times(b, c, largest);
        room -= taken;
      }
      fastest = std::max(fastest, rate);
      if (room > 0) break;
    }
    return size_ / fastest;
  });
}

}  // namespace hetplan::partition
