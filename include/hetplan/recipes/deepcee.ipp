// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/deepcee.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include <hetplan/cluster/exchange.hpp>
#include <hetplan/coarsen/compute_scores.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/sequence_cuts.hpp>
#include <hetplan/partition/allocate.hpp>
#include <hetplan/partition/bottleneck_chain.hpp>
#include <hetplan/partition/region_dp.hpp>
#include <hetplan/plan/blank_plan.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/recipes/zero_bubble.hpp>
#include <hetplan/schedule/order_plan.hpp>
#include <hetplan/simulate/candidate_rounds.hpp>

namespace HETPLAN_NAMESPACE::recipes {

namespace detail {

/// Regions, tables, splits and plans of one call.
class deepcee_search {
 public:
  deepcee_search(const planning_problem& problem, const deepcee_options& options)
      : problem_(problem), options_(options), model_(problem.model), net_(problem.cluster.network()), sizes_(problem.job.candidate_microbatch_sizes()),
        training_(problem.job.workload.mode == mode::training), sequence_(sequence_of(model_)),
        table_(model_, sequence_, problem.cluster, problem.cost, problem.models.memory, problem.job.workload, sizes_.back()),
        cuts_(model_, sequence_) {
    for (std::size_t l = 0; l < model_.size(); ++l) {
      const auto [forward, gradient] = cuts_.bytes_in(l, model_.size());
      forward_cut_.push_back(forward);
      cut_.push_back(forward + (training_ ? gradient : 0));
    }
    positions_ = thinned(cut_positions(cut_), 0, model_.size(), most_positions);
    double forward = 0, all = 0;
    for (const layer& l : model_.layers()) {
      forward += l.forward_flops.value();
      all += l.backward_input_flops.value() + l.backward_weight_flops.value();
      weights_ += l.backward_weight_flops.value();
    }
    weights_ = all > 0 ? weights_ / all : 0.5;  // of a backward
    group();
  }

  /// The best splits by the cost, over all microbatch sizes: over several regions, and in one.
  struct sized_split {
    partition::region_split split;
    int size = 1;
  };
  [[nodiscard]] std::vector<sized_split> splits() {
    std::vector<sized_split> found, in_one;
    for (const int size : sizes_) {
      const partition::region_chain chain = chain_of(size);
      partition::region_result r;
      if (options_.exact && regions_.size() <= partition::max_exact_regions) {
        r = partition::split_exactly(chain, {.cost = options_.cost, .use = options_.use});
      } else {
        r = partition::split_by_beam(chain, {.cost = options_.cost, .use = options_.use});
      }
      weighed_ += r.weighed;
      // A region alone is estimated worst: the cost knows nothing of how it runs.
      partition::region_split alone;
      for (std::size_t g = 0; g < regions_.size() && options_.use == partition::region_use::any; ++g) {
        partition::region_split one{.first = {0}, .region = {g}};
        one.seconds = partition::region_split_seconds(chain, one, options_.cost);
        if (one.seconds < alone.seconds) alone = std::move(one);
      }
      if (alone.exists()) in_one.push_back({std::move(alone), size});
      const bool has_company = r.split.region.size() > 1 || options_.use == partition::region_use::all;
      if (r.split.exists() && has_company) found.push_back({std::move(r.split), size});
    }
    for (auto* list : {&found, &in_one}) {
      std::ranges::stable_sort(*list, {}, [](const sized_split& s) { return s.split.seconds; });
      if (list->size() > options_.splits) list->resize(options_.splits);
    }
    found.insert(found.end(), in_one.begin(), in_one.end());
    return found;
  }

  /// A split as a plan, its regions in one mode; nothing where a region cannot run so.
  ///
  /// @param slack  where a region shares out layers: the fewest stages whose longest is so much longer at most than with the best number.
  [[nodiscard]] std::optional<plan> plan_of(const sized_split& s, region_mode mode, double slack) const {
    plan p = blank_plan(problem_, "deepcee", s.size);
    for (std::size_t i = 0; i < s.split.first.size(); ++i) {
      const std::size_t last = i + 1 < s.split.first.size() ? s.split.first[i + 1] : model_.size();
      if (!run_region(p, s.split.region[i], s.split.first[i], last, mode, slack)) return {};
    }
    for (std::size_t i = 0; i < p.stages.size(); ++i) p.stages[i].name = "s" + std::to_string(i);
    return p;
  }
  [[nodiscard]] long long weighed() const { return weighed_; }

 private:
  /// Boundaries at which splits are tried, and inside a region.
  static constexpr std::size_t most_positions = 200, most_inside = 100;

  struct region {
    std::vector<device_id> devices;               ///< fastest first
    std::vector<std::vector<device_id>> classes;  ///< likewise
    transfer_cost ring;                           ///< of all of them
    double inner_latency_s = 0, inner_s_per_byte = 0;
    std::map<int, std::vector<int>> shares;  ///< by microbatch size: samples of each device
  };

  void group() {
    const cluster& c = problem_.cluster;
    const bytes message = options_.message.value_or(
        bytes(std::accumulate(forward_cut_.begin(), forward_cut_.end(), 0.0) / static_cast<double>(forward_cut_.size()) * sizes_[sizes_.size() / 2]));
    const auto scores = coarsen::compute_scores(c.devices(), problem_.cost, model_, problem_.job.workload.mode, 1);
    const auto faster = [&](device_id a, device_id b) { return scores[a.index()] > scores[b.index()]; };
    for (const coarsen::device_region& r : coarsen::group_devices(c, message, scores, options_.groups).regions) {
      region mine;
      mine.devices = r.devices;
      mine.classes = r.classes;
      std::ranges::stable_sort(mine.devices, faster);
      std::ranges::stable_sort(mine.classes, [&](const auto& a, const auto& b) { return faster(a.front(), b.front()); });
      mine.ring = ring_reduction(net_, mine.devices);
      for (const device_id a : mine.devices) {
        for (const device_id b : mine.devices) {
          if (a == b) continue;
          const transfer_cost link = peak_transfer(net_, a, b);
          mine.inner_latency_s = std::max(mine.inner_latency_s, link.latency_s);
          mine.inner_s_per_byte = std::max(mine.inner_s_per_byte, link.s_per_byte);
        }
      }
      for (const int size : sizes_) {
        std::vector<int> caps(mine.devices.size(), size);
        const auto shares =
            partition::allocate(size, caps, [&](std::size_t d, int share) { return table_.time(0, model_.size(), mine.devices[d], share).total_s; });
        mine.shares.emplace(size, options_.alike ? even(size, mine.devices.size()) : *shares);
      }
      regions_.push_back(std::move(mine));
    }
  }

  [[nodiscard]] static std::vector<int> even(int samples, std::size_t devices) {
    std::vector<int> shares;
    const auto n = static_cast<int>(devices);
    for (int d = 0; d < n; ++d) shares.push_back(samples / n + (d < samples % n ? 1 : 0));
    return shares;
  }

  /// At most so many of some positions in [first, last), in each run of equal work the one whose boundary is lightest.
  [[nodiscard]] std::vector<std::size_t> thinned(const std::vector<std::size_t>& all, std::size_t first, std::size_t last,
                                                 std::size_t most) const {
    std::vector<std::size_t> in;
    for (const std::size_t p : all) {
      if (p >= first && p < last) in.push_back(p);
    }
    if (in.empty() || in.front() != first) in.insert(in.begin(), first);
    if (in.size() <= most) return in;
    std::vector<double> before{0};
    for (const layer& l : model_.layers()) before.push_back(before.back() + l.forward_flops.value() + 1);
    const double begin = before[first], each = (before[last] - begin) / static_cast<double>(most - 1);
    std::vector<std::size_t> kept{first};
    long long run = -1;
    for (const std::size_t p : in) {
      if (p == first) continue;
      const auto mine = static_cast<long long>((before[p] - begin) / each);
      if (mine != run) kept.push_back(p);
      else if (cut_[p] < cut_[kept.back()]) kept.back() = p;
      run = mine;
    }
    return kept;
  }

  [[nodiscard]] partition::region_chain chain_of(int size) const {
    partition::region_chain chain;
    chain.regions = regions_.size();
    chain.positions = positions_;
    chain.layers = model_.size();
    chain.microbatches = problem_.job.batch / size;
    chain.stage = [this, size, m = chain.microbatches](std::size_t r, std::size_t first, std::size_t last) {
      return stage_in(regions_[r], first, last, size, m);
    };
    chain.transfer_s = [this, size](std::size_t a, std::size_t b, std::size_t layer) {
      const transfer_cost link = between(regions_[a], regions_[b]);
      return link.latency_s + forward_cut_[layer] * size * link.s_per_byte;
    };
    return chain;
  }

  /// The best link of the first devices of two regions.
  [[nodiscard]] transfer_cost between(const region& a, const region& b) const {
    constexpr std::size_t most = 4;
    transfer_cost best{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    for (std::size_t i = 0; i < std::min(most, a.devices.size()); ++i) {
      for (std::size_t k = 0; k < std::min(most, b.devices.size()); ++k) {
        const transfer_cost link = peak_transfer(net_, a.devices[i], b.devices[k]);
        if (std::pair(link.s_per_byte, link.latency_s) < std::pair(best.s_per_byte, best.latency_s)) best = link;
      }
    }
    return best;
  }

  /// With so many microbatches in flight.
  [[nodiscard]] bool fits(std::size_t first, std::size_t last, device_id d, double samples, int in_flight = 1) const {
    const double needed =
        table_.state_bytes(first, last) + samples * (in_flight * table_.activation_bytes(first, last) + table_.cache_bytes(first, last));
    return needed <= memory_limit_bytes(problem_.cluster[d]);
  }

  /// What a region needs for a run of layers in that of its modes that takes least.
  [[nodiscard]] partition::region_stage stage_in(const region& r, std::size_t first, std::size_t last, int size, int microbatches) const {
    partition::region_stage best{.fits = false};
    double least = std::numeric_limits<double>::infinity();
    const auto offer = [&](double total_s, double backward_s, double forward_s, double collective_s) {
      const double all = microbatches * total_s + collective_s;
      if (!(all < least)) return;
      least = all;
      const double weights = training_ ? weights_ * backward_s : 0;
      best = {forward_s, std::max(0.0, backward_s - weights), weights, collective_s, true};
    };
    const auto allows = [&](region_mode m) { return std::ranges::find(options_.modes, m) != options_.modes.end(); };
    if (allows(region_mode::alone) || r.devices.size() == 1) {
      for (const auto& each : r.classes) {
        if (!fits(first, last, each.front(), size)) continue;
        const interval_time t = table_.time(first, last, each.front(), size);
        offer(t.total_s, t.backward_s, t.total_s - t.backward_s, 0);
      }
    }
    if (r.devices.size() == 1) return best;
    if (allows(region_mode::samples) || allows(region_mode::tensors)) {
      const auto& shares = r.shares.at(size);
      double total = 0, backward = 0;
      bool all_fit = true;
      for (std::size_t d = 0; d < shares.size(); ++d) {
        if (shares[d] == 0) continue;
        all_fit = all_fit && fits(first, last, r.devices[d], shares[d]);
        const interval_time t = table_.time(first, last, r.devices[d], shares[d]);
        total = std::max(total, t.total_s);
        backward = std::max(backward, t.backward_s);
      }
      if (all_fit) offer(total, backward, total - backward, training_ ? r.ring.time_s(table_.trainable_bytes(first, last)) : 0);
    }
    if (allows(region_mode::layers) || allows(region_mode::classes)) {
      double rate = 0, room = 0, way = 0, back = 0;
      for (const device_id d : r.devices) {
        const interval_time t = table_.time(first, last, d, size);
        rate += 1 / t.total_s;
        room += memory_limit_bytes(problem_.cluster[d]);
        way += (t.total_s - t.backward_s) / static_cast<double>(r.devices.size());
        back += t.backward_s / t.total_s / static_cast<double>(r.devices.size());
      }
      const double needed = table_.state_bytes(first, last) + size * (table_.activation_bytes(first, last) + table_.cache_bytes(first, last));
      const double inner = r.inner_latency_s + forward_cut_[first] * size * r.inner_s_per_byte;
      const double total = std::max(1 / rate, inner);
      if (needed <= room && first + 1 < last) offer(total, back * total, way + inner * static_cast<double>(r.devices.size() - 1), 0);
    }
    return best;
  }

  // --- plans ---

  bool run_region(plan& p, std::size_t which, std::size_t first, std::size_t last, region_mode mode, double slack) const {
    const region& r = regions_[which];
    const int size = p.microbatch_size;
    const auto add = [&](std::size_t from, std::size_t to, std::vector<assignment> devices, std::vector<int> columns = {}) {
      p.stages.push_back({.layers = sequence_.layers_of(from, to), .devices = std::move(devices), .columns = std::move(columns)});
    };
    if (r.devices.size() == 1) mode = region_mode::alone;
    switch (mode) {
      case region_mode::alone: {
        const device_id* best = nullptr;
        for (const auto& each : r.classes) {
          const bool better = best == nullptr || table_.time(first, last, each.front(), size).total_s < table_.time(first, last, *best, size).total_s;
          if (better && fits(first, last, each.front(), size)) best = &each.front();
        }
        if (best == nullptr) return false;
        add(first, last, {{*best, size}});
        return true;
      }
      case region_mode::samples: {
        std::vector<assignment> devices;
        const auto& shares = r.shares.at(size);
        for (std::size_t d = 0; d < shares.size(); ++d) {
          if (shares[d] > 0) devices.push_back({r.devices[d], shares[d]});
        }
        if (devices.size() < 2) return false;
        add(first, last, std::move(devices));
        return true;
      }
      case region_mode::layers: {
        std::vector<std::vector<device_id>> groups;
        for (const device_id d : r.devices) groups.push_back({d});
        return run_in_layers(p, groups, r, first, last, slack);
      }
      case region_mode::classes: return r.classes.size() > 1 && run_in_layers(p, r.classes, r, first, last, slack);
      case region_mode::tensors: break;
    }
    // The largest even number of devices as two columns: in a row a device and one half as fast or alike, rows by what they can do.
    const std::size_t rows = r.devices.size() / 2;
    if (rows == 0 || size < static_cast<int>(rows)) return false;
    std::vector<double> rate;
    for (std::size_t d = 0; d < 2 * rows; ++d) rate.push_back(1 / table_.time(first, last, r.devices[d], size).total_s);
    const auto shares = partition::allocate(size, std::vector<int>(rows, size), [&](std::size_t row, int share) {
      return share / (rate[row] + rate[2 * rows - 1 - row]);
    });
    std::vector<assignment> devices;
    double fast = 0, slow = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      if ((*shares)[row] == 0) return false;
      devices.push_back({r.devices[row], (*shares)[row]});
      devices.push_back({r.devices[2 * rows - 1 - row], (*shares)[row]});
      fast += rate[row], slow += rate[2 * rows - 1 - row];
    }
    const int weight = std::max(1, static_cast<int>(std::lround(fast / slow)));
    add(first, last, std::move(devices), {weight, 1});
    return true;
  }

  /// Layers on groups of devices one behind the other, the longest as short as possible; the samples of a group shared evenly.
  bool run_in_layers(plan& p, const std::vector<std::vector<device_id>>& groups, const region& r, std::size_t first, std::size_t last,
                     double slack) const {
    const int size = p.microbatch_size;
    const std::vector<std::size_t> inside = thinned(positions_, first, last, most_inside);
    const auto share = [&](std::size_t g) { return (size + static_cast<int>(groups[g].size()) - 1) / static_cast<int>(groups[g].size()); };
    const int microbatches = training_ ? p.microbatches : 1;
    const auto cut = [&](bool as_1f1b) {
      return partition::bottleneck_chain(
          inside, last, groups.size(), static_cast<int>(std::min<std::size_t>(groups.size(), 16)),
          [&](std::size_t from, std::size_t to, std::size_t g, int following) {
            const int in_flight = as_1f1b ? std::min(microbatches, following + 1) : 1;
            if (size < static_cast<int>(groups[g].size()) || !fits(from, to, groups[g].front(), share(g), in_flight))
              return std::numeric_limits<double>::infinity();
            return table_.time(from, to, groups[g].front(), share(g)).total_s;
          },
          [&](std::size_t position, std::size_t, std::size_t) { return cut_[position] * size * r.inner_s_per_byte; });
    };
    // With 1F1B's activations where they fit: who holds fewer waits more.
    auto chains = cut(true);
    if (std::ranges::none_of(chains, [](const partition::chain_cut& c) { return c.bottleneck < std::numeric_limits<double>::infinity(); }))
      chains = cut(false);
    double least = std::numeric_limits<double>::infinity();
    for (const partition::chain_cut& c : chains) least = c.exists() ? std::min(least, c.bottleneck) : least;
    if (!(least < std::numeric_limits<double>::infinity())) return false;
    const auto best = std::ranges::find_if(chains, [&](const partition::chain_cut& c) { return c.exists() && c.bottleneck <= slack * least; });
    for (std::size_t i = 0; i < best->first.size(); ++i) {
      const auto& members = groups[best->device[i]];
      std::vector<assignment> devices;
      const int n = static_cast<int>(members.size());
      for (int k = 0; k < n; ++k) devices.push_back({members[static_cast<std::size_t>(k)], size / n + (k < size % n ? 1 : 0)});
      p.stages.push_back({.layers = sequence_.layers_of(best->first[i], i + 1 < best->first.size() ? best->first[i + 1] : last),
                          .devices = std::move(devices)});
    }
    return true;
  }

  const planning_problem& problem_;
  const deepcee_options& options_;
  const planning_graph& model_;
  const network& net_;
  std::vector<int> sizes_;
  bool training_;
  layer_sequence sequence_;
  prefix_table table_;
  sequence_cuts cuts_;
  std::vector<double> forward_cut_, cut_;  ///< by layer: what crosses the boundary before it
  std::vector<std::size_t> positions_;
  double weights_ = 0;
  std::vector<region> regions_;
  long long weighed_ = 0;
};

}  // namespace detail

HETPLAN_INLINE deepcee_options deepcee_as_printed(bool second_level) {
  deepcee_options o{.cost = partition::region_cost::printed, .use = partition::region_use::all, .exact = false, .orders = {order_rule::compact}};
  o.modes = {region_mode::samples, region_mode::layers, region_mode::classes, region_mode::tensors};
  if (!second_level) {
    o.modes = {region_mode::samples};
    o.alike = true;
  }
  return o;
}

HETPLAN_INLINE plan_result deepcee(const planning_problem& problem, const any_objective& objective, int keep, const deepcee_options& options,
                                   const candidate_observer& observer) {
  check_keep(keep, "deepcee");
  if (options.modes.empty() || options.splits < 1)
    throw invalid_input("deepcee: " + std::to_string(options.modes.size()) + " modes and " + std::to_string(options.splits) +
                        " splits; expected one of each at least");
  stopwatch clock;
  detail::deepcee_search search(problem, options);
  const auto splits = search.splits();
  std::vector<plan> plans;
  for (const auto& s : splits) {
    for (const region_mode m : options.modes) {
      const bool stages = m == region_mode::layers || m == region_mode::classes;
      for (const double slack : {1.0, 1.2, 1.6, 2.5}) {
        if (auto p = search.plan_of(s, m, slack); p && std::ranges::find(plans, *p) == plans.end()) plans.push_back(*std::move(p));
        if (!stages) break;
      }
    }
  }
  const auto folds = [](order_rule r) { return r == order_rule::zb_v || r == order_rule::v_half || r == order_rule::v_min; };
  planning_problem ordered = problem;
  const bool training = problem.job.workload.mode == mode::training;
  if (training && ordered.job.orders.empty()) {
    ordered.job.orders = options.orders;
    ordered.job.only_orders = true;
  }
  if (training && std::ranges::any_of(ordered.job.orders, folds)) {
    for (std::size_t i = 0, n = plans.size(); i < n; ++i) {
      if (auto v = folded(plans[i], problem); v && std::ranges::find(plans, *v) == plans.end()) plans.push_back(*std::move(v));
    }
  }
  if (training && ordered.job.only_orders) {
    plan_result found;
    found.plans = std::move(plans);
    found.steps = search.weighed() / extensions_per_step;
    if (!found.plans.empty()) return schedule::choose_orders(ordered, objective, std::move(found), keep, observer);
    plans.clear();
  }
  ranking best(problem, objective, keep);
  for (plan& p : plans) {
    if (best.consider(std::move(p), static_cast<long long>(splits.size() * options.modes.size()), observer) == control::stop) break;
  }
  plan_result found = std::move(best).result();
  if (splits.empty() && found.status.result == outcome::none_found) found.status.reason = "no split of the model over regions fits";
  if (!training || found.plans.empty()) return found;
  return schedule::choose_orders(ordered, objective, std::move(found), keep, observer);
}

HETPLAN_INLINE plan_result deepcee(const planning_problem& problem, const any_objective& objective, int keep,
                                   const candidate_observer& observer) {
  return deepcee(problem, objective, keep, deepcee_options{}, observer);
}

}  // namespace HETPLAN_NAMESPACE::recipes
