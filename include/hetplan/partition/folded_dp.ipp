// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/folded_dp.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include <hetplan/cluster/network.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::partition {

namespace detail {

/// The search of folded_dp. Partial drafts grow from the last stage to the first.
class folded_search {
 public:
  folded_search(const planning_problem& problem, const search_tables& t, const std::vector<int>& sizes, const folded_options& options)
      : t_(t), sizes_(sizes), options_(options), mode_(problem.job.workload.mode), shared_(shared_tensors(problem, t.sequence)),
        largest_(*std::max_element(sizes.begin(), sizes.end())), batch_(problem.job.batch) {
    boundaries_ = {0};
    for (const std::size_t b : options.boundaries) {
      if (b > boundaries_.back() && b < t.sequence.size()) boundaries_.push_back(b);
    }
    if (options.boundaries.empty()) {
      for (std::size_t b = 1; b < t.sequence.size(); ++b) boundaries_.push_back(b);
    }
    for (const int size : sizes) {
      if (count_of_.insert({size}, 0)) distinct_.push_back(size);
      ++*count_of_.find({size});
    }
    devices_ = options.devices;
    for (const device& d : t.cluster.devices()) {
      if (options.devices.empty()) devices_.push_back(d.id);
    }
    twin_before_.assign(devices_.size(), none);
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      links_.emplace_back();
      for (std::size_t b = 0; b < devices_.size(); ++b) {
        links_.back().push_back(a == b ? exchange_cost{}
                                       : peak_exchange(t.cluster.network(), std::span(&devices_[a], 1), std::span(&devices_[b], 1)));
        if (b < a && class_of(devices_[a]) == class_of(devices_[b])) twin_before_[a] = b;
      }
      limits_.push_back(memory_limit_bytes(t.cluster[devices_[a]]));
    }
    for (const std::size_t b : boundaries_) {
      const auto [forward, gradient] = t.cuts.bytes_in(b, t.sequence.size());
      crossing_.emplace_back(forward, gradient);
    }
  }

  std::vector<folded_draft> run() {
    const std::size_t ends = boundaries_.size();
    open_.resize(ends + 1);
    constexpr double most_cells = 4e6;
    const double cells = std::pow(options_.slots + 1, devices_.size()) * static_cast<double>(devices_.size());
    if (options_.labels > 0 && cells * static_cast<double>(options_.labels * ends) < most_cells) {
      cells_ = static_cast<std::size_t>(cells);
      least_s_.assign(cells_ * ends * options_.labels, inf);
    }
    partial none_yet;
    none_yet.holders.assign(shared_.size(), 0);
    open_[ends].push_back(std::move(none_yet));
    for (std::size_t p = ends; p > 0; --p) {
      prune(open_[p]);
      for (const partial& x : open_[p]) {
        const auto parent = static_cast<std::uint32_t>(kept_.size());
        kept_.push_back({x.parent, static_cast<std::uint32_t>(p), x.head, x.recompute});
        if (x.stages == options_.stages) continue;
        for (std::size_t d = 0; d < devices_.size(); ++d) extend(x, parent, p, d);
      }
      open_[p] = {};
    }
    return finished();
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  static constexpr double inf = std::numeric_limits<double>::infinity();

  /// What a device with a stage, which may get another one, holds.
  struct holding {
    std::uint8_t device = 0;
    double load_s = 0;  ///< its work, and the steps behind its last stage where no backwards follow
    double held = 0, reserve = 0, workspace = 0;
    std::uint64_t tensors = 0;  ///< shared tensors
  };
  struct partial {
    double reach_s = 0, rest_s = 0;
    std::uint64_t used = 0;  ///< stages by device, four bits each
    std::uint32_t parent = ~std::uint32_t{0};
    std::uint16_t head = 0xffff;
    std::uint16_t stages = 0;
    bool recompute = false;
    std::vector<holding> holdings = {};       ///< by device
    std::vector<std::uint32_t> holders = {};  ///< by shared tensor: devices, one bit each
  };
  struct node {
    std::uint32_t parent, boundary;
    std::uint16_t head;
    bool recompute;
  };
  struct stage_cost {
    double work_s = 0, fill_s = 0;
  };

  [[nodiscard]] std::size_t class_of(device_id d) const {
    const auto holds = [&](const std::vector<device_id>& members) { return std::ranges::find(members, d) != members.end(); };
    return static_cast<std::size_t>(std::ranges::find_if(t_.classes, holds) - t_.classes.begin());
  }
  [[nodiscard]] std::size_t block(std::size_t boundary) const {
    return boundary < boundaries_.size() ? boundaries_[boundary] : t_.sequence.size();
  }
  [[nodiscard]] static std::uint64_t used_by(const partial& x, std::size_t d) { return x.used >> (4 * d) & 15U; }

  [[nodiscard]] stage_cost cost_of(std::size_t first, std::size_t last, std::size_t d, bool recompute) const {
    stage_cost c;
    const auto time = [&](int size) {
      interval_time x = t_.table.time(first, last, devices_[d], size);
      return std::pair(x.total_s - x.backward_s, x.backward_s + (recompute ? x.total_s - x.backward_s : 0));
    };
    for (const int size : distinct_) {
      const auto [forward, backward] = time(size);
      c.work_s += *count_of_.find({size}) * (forward + backward);
    }
    c.fill_s = time(sizes_.front()).first;
    if (mode_ == mode::training) c.fill_s += time(sizes_.back()).second;
    return c;
  }

  void extend(const partial& x, std::uint32_t parent, std::size_t p, std::size_t d) {
    const std::uint64_t used = used_by(x, d);
    if (x.stages > 0 && x.head == d) return;
    if (used >= static_cast<std::uint64_t>(options_.slots)) return;
    // Of interchangeable devices the first ones are used first.
    if (used == 0 && twin_before_[d] != none && used_by(x, twin_before_[d]) == 0) return;
    double reach_s = x.reach_s, rest_s = x.rest_s;
    if (x.stages > 0) {
      const exchange_cost& link = links_[d][x.head];
      const auto [forward, gradient] = crossing_[p];
      const auto passes = static_cast<double>(sizes_.size());
      const bool back = mode_ == mode::training && gradient > 0;
      const double there_s = passes * link.forward.latency_s + (forward > 0 ? batch_ * forward * link.forward.s_per_byte : 0);
      const double back_s = back ? passes * link.backward.latency_s + batch_ * gradient * link.backward.s_per_byte : 0;
      const double own_s = back ? link.together_s(there_s, back_s) : there_s;
      double fill_s = link.forward.time_s(sizes_.front() * forward);
      if (back) fill_s += link.backward.time_s(sizes_.back() * gradient);
      if (!(fill_s < inf)) return;
      add_step(own_s, fill_s, reach_s, rest_s);
    }
    for (std::size_t a = p; a-- > 0;) {
      if (++extensions_ > options_.most_extensions) return;
      const std::size_t first = block(a), last = block(p);
      if (!t_.pins.allow(first, last, devices_[d])) return;  // nor a longer stage
      bool any = false;
      for (const bool recompute : {false, true}) {
        if (recompute && !(options_.recompute && mode_ == mode::training)) continue;
        any = place(x, parent, a, first, last, d, recompute, reach_s, rest_s) || any;
      }
      if (!any && !options_.recompute) return;  // longer stages need more memory
    }
  }

  /// Puts a step of `work_s`, and `fill_s` for one pass, before a pipeline.
  void add_step(double work_s, double fill_s, double& reach_s, double& rest_s) const {
    if (mode_ == mode::training) {
      reach_s = std::max(work_s, fill_s + reach_s);
    } else if (mode_ == mode::inference) {
      reach_s = std::max(work_s + rest_s, fill_s + reach_s);
      rest_s += fill_s;
    } else {
      rest_s += fill_s;
      reach_s = std::max({work_s, reach_s, rest_s});
    }
  }

  /// Returns false if the stage does not fit into memory.
  bool place(const partial& x, std::uint32_t parent, std::size_t a, std::size_t first, std::size_t last, std::size_t d, bool recompute,
             double reach_s, double rest_s) {
    std::uint64_t tensors = 0;
    for (std::size_t g = 0; g < shared_.size(); ++g) {
      if (shared_[g].in(first, last)) tensors |= std::uint64_t{1} << g;
    }
    const auto known = std::find_if(x.holdings.begin(), x.holdings.end(), [&](const holding& h) { return h.device == d; });
    holding mine{static_cast<std::uint8_t>(d)};
    if (known != x.holdings.end()) mine = *known;
    const double activation = largest_ * t_.table.activation_bytes(first, last);
    mine.held += t_.table.state_bytes(first, last) + (recompute ? largest_ * t_.cuts.bytes_in(first, last).first : activation);
    if (mode_ == mode::generation) mine.held += batch_ * t_.table.cache_bytes(first, last);
    if (recompute) mine.reserve = std::max(mine.reserve, activation);
    for (std::size_t g = 0; g < shared_.size(); ++g) {
      if ((tensors & mine.tensors) >> g & 1U) mine.held -= shared_[g].state;
    }
    mine.workspace = std::max(mine.workspace, t_.table.workspace().bytes(first, last, largest_));
    if (mine.held + mine.reserve + mine.workspace > limits_[d]) return false;
    const stage_cost c = cost_of(first, last, d, recompute);
    mine.load_s += c.work_s;
    if (known == x.holdings.end() && mode_ == mode::inference) mine.load_s += rest_s;
    mine.tensors |= tensors;
    add_step(c.work_s, c.fill_s, reach_s, rest_s);
    reach_s = std::max(reach_s, mine.load_s);
    if (!enters(a, x.used + (std::uint64_t{1} << (4 * d)), d, reach_s)) return true;
    partial next;
    next.reach_s = reach_s;
    next.rest_s = rest_s;
    next.used = x.used + (std::uint64_t{1} << (4 * d));
    next.parent = parent;
    next.head = static_cast<std::uint16_t>(d);
    next.stages = static_cast<std::uint16_t>(x.stages + 1);
    next.recompute = recompute;
    const bool may_return = used_by(next, d) < static_cast<std::uint64_t>(options_.slots);
    for (const holding& h : x.holdings) {
      if (h.device != d) next.holdings.push_back(h);
    }
    if (may_return) {
      next.holdings.insert(std::upper_bound(next.holdings.begin(), next.holdings.end(), mine,
                                            [](const holding& l, const holding& r) { return l.device < r.device; }),
                           mine);
    }
    next.holders = x.holders;
    for (std::size_t g = 0; g < shared_.size(); ++g) {
      if (tensors >> g & 1U) next.holders[g] |= 1U << d;
    }
    open_[a].push_back(std::move(next));
    return true;
  }

  /// Returns false for a partial draft that prune would drop because of its reach; for few devices, so that a table can tell.
  [[nodiscard]] bool enters(std::size_t a, std::uint64_t used, std::size_t head, double reach_s) {
    if (cells_ == 0 || a == 0) return true;
    std::size_t cell = 0;
    for (std::size_t d = devices_.size(); d-- > 0;) cell = cell * (static_cast<std::size_t>(options_.slots) + 1) + (used >> (4 * d) & 15U);
    double* best = &least_s_[(a * cells_ + cell * devices_.size() + head) * options_.labels];
    double* const end = best + options_.labels;
    if (reach_s >= end[-1]) return false;
    double* at = std::upper_bound(best, end, reach_s);
    std::move_backward(at, end - 1, end);
    *at = reach_s;
    return true;
  }

  [[nodiscard]] static auto key(const partial& x) { return std::tuple(x.used, x.head); }

  /// Returns true if everything that can follow `b` can follow `a`, and ends no later.
  [[nodiscard]] static bool covers(const partial& a, const partial& b) {
    if (a.reach_s > b.reach_s || a.rest_s > b.rest_s || a.stages > b.stages || a.holders != b.holders) return false;
    for (std::size_t i = 0; i < a.holdings.size(); ++i) {
      const holding &l = a.holdings[i], &r = b.holdings[i];
      if (l.device != r.device || l.tensors != r.tensors || l.load_s > r.load_s) return false;
      if (l.held > r.held || l.reserve > r.reserve || l.workspace > r.workspace) return false;
    }
    return true;
  }

  /// Drops partial drafts that others cover, and all but the best where labels are limited.
  void prune(std::vector<partial>& all) const {
    std::stable_sort(all.begin(), all.end(), [](const partial& a, const partial& b) {
      return std::tuple(a.used, a.head, a.reach_s, a.stages) < std::tuple(b.used, b.head, b.reach_s, b.stages);
    });
    std::size_t kept = 0, first = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (kept > 0 && key(all[kept - 1]) != key(all[i])) first = kept;
      if (options_.labels > 0 && kept - first >= options_.labels) continue;
      bool covered = false;
      for (std::size_t k = first; k < kept && !covered; ++k) covered = covers(all[k], all[i]);
      if (covered) continue;
      if (kept != i) all[kept] = std::move(all[i]);
      ++kept;
    }
    all.resize(kept);
  }

  std::vector<folded_draft> finished() {
    std::vector<std::pair<std::pair<double, std::uint16_t>, const partial*>> ranked;
    for (const partial& x : open_[0]) {
      double time_s = x.reach_s;
      if (mode_ == mode::training) {
        for (std::size_t g = 0; g < shared_.size(); ++g) {
          std::vector<device_id> ring;
          for (std::size_t d = 0; d < devices_.size(); ++d) {
            if (x.holders[g] >> d & 1U) ring.push_back(devices_[d]);
          }
          if (ring.size() > 1 && shared_[g].trainable > 0)
            time_s += ring_reduction(t_.cluster.network(), ring).time_s(shared_[g].trainable);
        }
      }
      if (time_s < inf) ranked.emplace_back(std::pair(time_s, x.stages), &x);
    }
    sort_by(ranked, [](const auto& r) { return r.first; });
    std::vector<folded_draft> found;
    for (const auto& [rank, x] : ranked) {
      if (found.size() == options_.drafts) break;
      folded_draft f;
      f.response_s = rank.first;
      f.draft.stages.push_back({0, devices_[x->head], x->recompute});
      for (const node* n = &kept_[x->parent]; n->head < devices_.size(); n = &kept_[n->parent])
        f.draft.stages.push_back({block(n->boundary), devices_[n->head], n->recompute});
      f.draft.sizes = sizes_;
      f.draft.rules.assign(t_.cluster.size(), ready_rule::path);
      found.push_back(std::move(f));
    }
    return found;
  }

  const search_tables& t_;
  const std::vector<int>& sizes_;
  const folded_options& options_;
  mode mode_;
  std::vector<shared_tensor> shared_;
  int largest_, batch_;
  std::vector<device_id> devices_;
  std::vector<std::size_t> boundaries_;
  std::vector<std::pair<double, double>> crossing_;  ///< bytes per sample, by boundary
  keyed<int> count_of_;
  std::vector<int> distinct_;
  std::vector<std::vector<exchange_cost>> links_;  ///< by indices into devices_, like all that follows
  std::vector<double> limits_;
  std::vector<std::size_t> twin_before_;    ///< previous device that is interchangeable; none if there is none
  std::vector<std::vector<partial>> open_;  ///< by boundary where the first stage begins
  std::vector<node> kept_;
  std::size_t cells_ = 0;        ///< of a boundary in least_s_; 0: no table
  std::vector<double> least_s_;  ///< by boundary, devices used and first device: the least reaches
  long long extensions_ = 0;
};

}  // namespace detail

HETPLAN_INLINE std::vector<folded_draft> folded_dp(const planning_problem& problem, const search_tables& tables,
                                                   const std::vector<int>& sizes, const folded_options& options) {
  constexpr std::size_t most_devices = 16;
  const std::size_t devices = options.devices.empty() ? tables.cluster.size() : options.devices.size();
  if (sizes.empty() || devices > most_devices || problem.model.weight_groups().size() > 64 || options.slots > 15) return {};
  return detail::folded_search(problem, tables, sizes, options).run();
}

}  // namespace hetplan::partition
