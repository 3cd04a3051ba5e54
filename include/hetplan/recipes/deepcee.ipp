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

#include <hetplan/cluster/network.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/partition/region_dp.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/schedule/order_plan.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

namespace detail {

class deepcee_search {
 public:
  deepcee_search(const planning_problem& problem, const deepcee_options& options)
      : problem_(problem), options_(options), model_(problem.model), net_(problem.cluster.network()),
        sizes_(problem.job.candidate_microbatch_sizes()), training_(problem.job.workload.mode == mode::training),
        sequence_(sequence_of(model_)),
        table_(model_, sequence_, problem.cluster, problem.cost, problem.models.memory, problem.job.workload, sizes_.back()),
        cuts_(model_, sequence_) {
    for (std::size_t l = 0; l < model_.size(); ++l) {
      const auto [forward, gradient] = cuts_.bytes_in(l, model_.size());
      forward_cut_.push_back(forward);
      cut_.push_back(forward + (training_ ? gradient : 0));
    }
    positions_ = thinned(partition::cut_positions(cut_), 0, model_.size(), most_positions);
    double all = 0;
    for (const layer& l : model_.layers()) {
      all += l.backward_input_flops.value() + l.backward_weight_flops.value();
      weights_ += l.backward_weight_flops.value();
    }
    weights_ = all > 0 ? weights_ / all : 0.5;  // share of a backward
    group();
  }

  /// A split with its microbatch size. splits() returns the cheapest over several regions and the cheapest in one, over all sizes.
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
      // The cost is least accurate for single regions, as it ignores how they run, so the best few are tried.
      std::vector<partition::region_split> alone;
      for (std::size_t g = 0; g < regions_.size() && options_.use == partition::region_use::any; ++g) {
        partition::region_split one{.first = {0}, .region = {g}};
        one.seconds = partition::region_split_seconds(chain, one, options_.cost);
        if (one.seconds < std::numeric_limits<double>::infinity()) alone.push_back(std::move(one));
      }
      sort_by(alone, &partition::region_split::seconds);
      for (std::size_t i = 0; i < std::min(alone.size(), regions_tried); ++i) in_one.push_back({std::move(alone[i]), size});
      const bool has_company = r.split.region.size() > 1 || options_.use == partition::region_use::all;
      if (r.split.exists() && has_company) found.push_back({std::move(r.split), size});
    }
    for (auto* list : {&found, &in_one}) {
      sort_by(*list, [](const sized_split& s) { return s.split.seconds; });
      const std::size_t most = list == &found ? options_.splits : regions_tried * options_.splits;
      if (list->size() > most) list->resize(most);
    }
    found.insert(found.end(), in_one.begin(), in_one.end());
    return found;
  }

  struct manner {
    region_mode mode;
    double slack = 1;         ///< layers, classes: the fewest stages whose longest is at most this factor longer than with the best number
    std::size_t classes = 1;  ///< number of classes at work, the fastest of each region
    std::size_t group = 0;    ///< classes: devices per group; 0: whole classes
  };
  [[nodiscard]] std::vector<manner> manners() const {
    std::size_t most = 1;
    for (const region& r : regions_) most = std::max(most, r.classes.size());
    std::vector<manner> all;
    for (const region_mode m : options_.modes) {
      const bool stages = m == region_mode::layers || m == region_mode::classes;
      for (std::size_t classes = options_.use == partition::region_use::any ? 1 : most; classes <= most; ++classes) {
        for (const double slack : {1.0, 1.2, 1.6, 2.5}) {
          if (slack > 1 && !stages) continue;
          for (const std::size_t group : {0U, 2U, 3U, 4U}) {
            if (group == 0 || m == region_mode::classes) all.push_back({m, slack, classes, group});
          }
        }
      }
    }
    return all;
  }

  /// Returns a split as a plan with all regions in one manner; nothing if a region cannot run so.
  [[nodiscard]] std::optional<plan> plan_of(const sized_split& s, const manner& how) const {
    plan p = blank_plan(problem_, "deepcee", s.size);
    for (std::size_t i = 0; i < s.split.first.size(); ++i) {
      const std::size_t last = i + 1 < s.split.first.size() ? s.split.first[i + 1] : model_.size();
      if (!run_region(p, working(regions_[s.split.region[i]], how.classes), s.split.first[i], last, how)) return {};
    }
    for (std::size_t i = 0; i < p.stages.size(); ++i) p.stages[i].name = "s" + std::to_string(i);
    return p;
  }
  /// Returns the most promising plans by the busiest device or boundary of an iteration and the path of one microbatch to it.
  [[nodiscard]] std::vector<plan> promising(std::vector<plan> plans, std::size_t most) const {
    if (plans.size() <= most) return plans;
    std::vector<std::pair<double, std::size_t>> ranked;
    for (std::size_t i = 0; i < plans.size(); ++i) ranked.emplace_back(guess_s(plans[i]), i);
    sort_stably(ranked);
    std::vector<plan> kept;
    for (std::size_t i = 0; i < most; ++i) kept.push_back(std::move(plans[ranked[i].second]));
    return kept;
  }
  [[nodiscard]] long long weighed() const { return weighed_; }

 private:
  /// Largest number of boundaries tried in the whole model, and inside a region.
  static constexpr std::size_t most_positions = 200, most_inside = 100;
  /// Number of single regions tried per microbatch size.
  static constexpr std::size_t regions_tried = 2;

  struct region {
    std::vector<device_id> devices;  ///< fastest first
    std::vector<std::vector<device_id>> classes;
    transfer_cost ring;  ///< over all devices
    double inner_latency_s = 0, inner_s_per_byte = 0;
    std::map<int, std::vector<int>> shares;  ///< by microbatch size: samples per device
  };

  void group() {
    const cluster& c = problem_.cluster;
    const bytes message = options_.message.value_or(bytes(std::accumulate(forward_cut_.begin(), forward_cut_.end(), 0.0) /
                                                          static_cast<double>(forward_cut_.size()) * sizes_[sizes_.size() / 2]));
    const auto scores = coarsen::compute_scores(c.devices(), problem_.cost, model_, problem_.job.workload.mode, 1);
    const auto faster = [&](device_id a, device_id b) { return scores[a.index()] > scores[b.index()]; };
    for (const coarsen::device_region& r : coarsen::group_devices(c, message, scores, options_.groups).regions) {
      region mine;
      mine.devices = r.devices;
      mine.classes = r.classes;
      sort_stably(mine.devices, faster);
      sort_stably(mine.classes, [&](const auto& a, const auto& b) { return faster(a.front(), b.front()); });
      mine.ring = ring_reduction(net_, mine.devices);
      for (const device_id a : mine.devices) {
        for (const device_id b : mine.devices) {
          if (a == b) continue;
          const transfer_cost link = peak_transfer(net_, a, b);
          mine.inner_latency_s = std::max(mine.inner_latency_s, link.latency_s);
          mine.inner_s_per_byte = std::max(mine.inner_s_per_byte, link.s_per_byte);
        }
      }
      for (const int size : sizes_) mine.shares.emplace(size, shares_of(mine, size));
      regions_.push_back(std::move(mine));
    }
  }

  [[nodiscard]] std::vector<int> shares_of(const region& r, int size) const {
    const auto n = static_cast<int>(r.devices.size());
    if (!options_.alike) {
      return *partition::allocate(size, std::vector<int>(r.devices.size(), size),
                                  [&](std::size_t d, int share) { return table_.time(0, model_.size(), r.devices[d], share).total_s; });
    }
    std::vector<int> shares;
    for (int d = 0; d < n; ++d) shares.push_back(size / n + (d < size % n ? 1 : 0));
    return shares;
  }

  /// Returns at most `most` of the positions in [first, last): for each run of equal work the one with the lightest boundary.
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

  /// Returns the best link between the first devices of two regions.
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

  [[nodiscard]] bool fits(std::size_t first, std::size_t last, device_id d, double samples, int in_flight = 1) const {
    const double needed = table_.state_bytes(first, last) +
                          samples * (in_flight * table_.activation_bytes(first, last) + table_.cache_bytes(first, last)) +
                          table_.workspace().bytes(first, last, samples);
    return needed <= memory_limit_bytes(problem_.cluster[d]);
  }

  /// Returns the costs of a run of layers in a region, in the allowed mode that takes least.
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
        if (t.total_s > 0) back += t.backward_s / t.total_s / static_cast<double>(r.devices.size());
      }
      const double needed = table_.state_bytes(first, last) +
                            size * (table_.activation_bytes(first, last) + table_.cache_bytes(first, last)) +
                            static_cast<double>(r.devices.size()) * table_.workspace().bytes(first, last, size);
      const double inner = r.inner_latency_s + forward_cut_[first] * size * r.inner_s_per_byte;
      const double total = std::max(1 / rate, inner);
      if (needed <= room && first + 1 < last) offer(total, back * total, way + inner * static_cast<double>(r.devices.size() - 1), 0);
    }
    return best;
  }

  [[nodiscard]] double guess_s(const plan& p) const {
    double way = 0, longest = 0;
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      const stage& st = p.stages[s];
      const std::size_t first = st.layers.front().index(), last = st.layers.back().index() + 1;
      double busiest = 0;
      for (std::size_t d = 0; d < st.devices.size(); ++d)
        busiest =
            std::max(busiest, table_.time(first, last, st.devices[d].device, st.devices[d].samples).total_s * st.fraction(st.column_of(d)));
      double once = 0;
      if (training_ && st.devices.size() > 1) {
        std::vector<device_id> ring;
        for (const assignment& a : st.devices) ring.push_back(a.device);
        once = ring_reduction(net_, ring).time_s(table_.trainable_bytes(first, last));
      }
      longest = std::max(longest, way + p.microbatches * busiest + once);
      way += busiest;
      if (s + 1 == p.stages.size()) break;
      const transfer_cost link = peak_transfer(net_, st.devices.front().device, p.stages[s + 1].devices.front().device);
      const double sent = link.latency_s + cut_[last] * p.microbatch_size * link.s_per_byte;
      longest = std::max(longest, way + p.microbatches * sent);
      way += sent;
    }
    return longest;
  }

  /// Returns a region without its slower classes.
  [[nodiscard]] region working(const region& whole, std::size_t classes) const {
    if (whole.classes.size() <= classes) return whole;
    region r = whole;
    r.classes.resize(classes);
    std::erase_if(r.devices, [&](device_id d) {
      return std::ranges::none_of(r.classes, [&](const auto& each) { return std::ranges::find(each, d) != each.end(); });
    });
    r.shares.clear();
    for (const auto& [size, shares] : whole.shares) r.shares.emplace(size, shares_of(r, size));
    return r;
  }

  bool run_region(plan& p, const region& r, std::size_t first, std::size_t last, const manner& how) const {
    region_mode mode = how.mode;
    const int size = p.microbatch_size;
    const auto add = [&](std::size_t from, std::size_t to, std::vector<assignment> devices, std::vector<int> columns = {}) {
      p.stages.push_back({.layers = sequence_.layers_of(from, to), .devices = std::move(devices), .columns = std::move(columns)});
    };
    if (r.devices.size() == 1) mode = region_mode::alone;
    switch (mode) {
      case region_mode::alone: {
        const device_id* best = nullptr;
        for (const auto& each : r.classes) {
          const bool better =
              best == nullptr || table_.time(first, last, each.front(), size).total_s < table_.time(first, last, *best, size).total_s;
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
        return run_in_layers(p, groups, r, first, last, how.slack);
      }
      case region_mode::classes: {
        if (how.group == 0) return r.classes.size() > 1 && run_in_layers(p, r.classes, r, first, last, how.slack);
        std::vector<std::vector<device_id>> groups;
        for (const auto& each : r.classes) {
          for (std::size_t d = 0; d + how.group <= each.size(); d += how.group) {
            groups.emplace_back(each.begin() + static_cast<std::ptrdiff_t>(d), each.begin() + static_cast<std::ptrdiff_t>(d + how.group));
          }
        }
        return groups.size() > 1 && run_in_layers(p, groups, r, first, last, how.slack);
      }
      case region_mode::tensors: break;
    }
    // region_mode::tensors: an even number of devices in two columns. Rows pair fast with slow devices and share samples by joint speed.
    const std::size_t rows = r.devices.size() / 2;
    if (rows == 0 || size < static_cast<int>(rows)) return false;
    std::vector<double> rate;
    for (std::size_t d = 0; d < 2 * rows; ++d) rate.push_back(1 / table_.time(first, last, r.devices[d], size).total_s);
    const auto shares = partition::allocate(size, std::vector<int>(rows, size),
                                            [&](std::size_t row, int share) { return share / (rate[row] + rate[2 * rows - 1 - row]); });
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

  /// Adds a pipeline of device groups with the shortest longest stage. Devices of a group share the samples evenly.
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
            return table_.total_s(from, to, groups[g].front(), share(g));
          },
          [&](std::size_t position, std::size_t, std::size_t) { return cut_[position] * size * r.inner_s_per_byte; });
    };
    // With memory for 1F1B's activations if they fit: stages with fewer microbatches in flight wait longer.
    auto chains = cut(true);
    if (std::ranges::none_of(chains, [](const partition::chain_cut& c) { return c.bottleneck < std::numeric_limits<double>::infinity(); }))
      chains = cut(false);
    double least = std::numeric_limits<double>::infinity();
    for (const partition::chain_cut& c : chains) least = c.exists() ? std::min(least, c.bottleneck) : least;
    if (!(least < std::numeric_limits<double>::infinity())) return false;
    const auto best =
        std::ranges::find_if(chains, [&](const partition::chain_cut& c) { return c.exists() && c.bottleneck <= slack * least; });
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
  std::vector<double> forward_cut_, cut_;  ///< by layer: bytes that cross the boundary before it
  std::vector<std::size_t> positions_;
  double weights_ = 0;
  std::vector<region> regions_;
  long long weighed_ = 0;
};

}  // namespace detail

HETPLAN_INLINE deepcee_options deepcee_as_printed(bool second_level) {
  deepcee_options o{
      .cost = partition::region_cost::printed, .use = partition::region_use::all, .exact = false, .orders = {order_rule::compact}};
  o.modes = {region_mode::samples, region_mode::layers, region_mode::classes, region_mode::tensors};
  if (!second_level) {
    o.modes = {region_mode::samples};
    o.alike = true;
  }
  return o;
}

HETPLAN_INLINE plan_result deepcee(const planning_problem& problem, const any_objective& objective, int keep,
                                   const deepcee_options& options, const candidate_observer& observer) {
  check_keep(keep, "deepcee");
  if (options.modes.empty() || options.splits < 1 || options.orders.empty())
    throw invalid_input("deepcee: " + std::to_string(options.modes.size()) + " modes, " + std::to_string(options.splits) + " splits and " +
                        std::to_string(options.orders.size()) + " orders; expected one of each at least");
  stopwatch clock;
  std::optional<detail::deepcee_search> of_regions;
  try {
    of_regions.emplace(problem, options);
  } catch (const missing_route& none) {
    return {.status = {outcome::none_found, none.what()}, .elapsed = seconds(clock.elapsed_s())};
  }
  detail::deepcee_search& search = *of_regions;
  const auto splits = search.splits();
  std::vector<plan> plans;
  for (const auto& s : splits) {
    for (const auto& how : search.manners()) {
      if (auto p = search.plan_of(s, how); p && std::ranges::find(plans, *p) == plans.end()) plans.push_back(*std::move(p));
    }
  }
  plans = search.promising(std::move(plans), std::max<std::size_t>(24, static_cast<std::size_t>(2 * keep)));
  planning_problem ordered = problem;
  const bool training = problem.job.workload.mode == mode::training;
  if (training && ordered.job.orders.empty()) {
    ordered.job.orders = options.orders;
    ordered.job.only_orders = true;
  }
  if (training && ordered.job.only_orders) {
    if (!plans.empty()) {
      plan_result chosen =
          schedule::detail::order_all(ordered, objective, plans, {.steps = search.weighed() / extensions_per_step}, keep, observer);
      without_proof(chosen);
      return chosen;
    }
  }
  ranking best(problem, objective, keep);
  for (plan& p : plans) {
    if (best.consider(std::move(p), static_cast<long long>(splits.size() * options.modes.size()), observer) == control::stop) break;
  }
  plan_result found = std::move(best).result();
  without_proof(found);
  if (splits.empty() && found.status.result == outcome::none_found) found.status.reason = "no split of the model over regions fits";
  if (!training || found.plans.empty()) return found;
  return schedule::choose_orders(ordered, objective, std::move(found), keep, observer);
}

HETPLAN_INLINE plan_result deepcee(const planning_problem& problem, const any_objective& objective, int keep,
                                   const candidate_observer& observer) {
  return deepcee(problem, objective, keep, deepcee_options{}, observer);
}

}  // namespace hetplan::recipes
