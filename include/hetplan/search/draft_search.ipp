// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/search/draft_search.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <hetplan/core/crew.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/partition/folded_dp.hpp>

namespace hetplan {

namespace detail {

/// One draft on its way through simulated annealing.
class draft_annealer {
 public:
  using draft = partition::pipeline_draft;

  draft_annealer(const planning_problem& problem, const any_objective& objective, const partition::search_tables& tables, draft first,
                 const draft_search_options& options, std::uint64_t seed)
      : problem_(problem), objective_(objective), replay_(problem, tables), options_(options), pins_(tables.pins), random_(seed),
        blocks_(tables.sequence.size()), largest_(problem.job.largest_share()), now_(std::move(first)) {
    for (int b : problem.job.candidate_microbatch_sizes()) sizes_.push_back(b);
    const auto passes = static_cast<std::size_t>((problem.job.batch + largest_ - 1) / largest_);
    most_passes_ = std::max(options.most_passes, passes);
    training_ = problem.job.workload.mode == mode::training;
    equal_ = problem.job.workload.mode == mode::generation;
    owns_network_ = !problem.models.network.as_planned() || bool{problem.models.sharing};
    const bool no_energy = !objective.monotone() || (objective.score(seconds(1), joules(0)) == objective.score(seconds(1), joules(1e9)));
    only_latency_ = no_energy && (!objective.monotone() || problem.job.workload.mode != mode::generation);
    replay_.estimate_energy(!no_energy);
    now_score_ = best_score_ = score(now_, {});
    best_ = now_;
    settle();
  }

  /// (overflow, score); smaller is better.
  using cost = std::pair<double, double>;

  /// Anneals until so many tasks have been replayed.
  void run(long long tasks, double first_temperature, double last_temperature) {
    const long long until = tasks_ + tasks;
    const long long from = tasks_;
    while (tasks_ < until) {
      const double done = static_cast<double>(tasks_ - from) / static_cast<double>(tasks);
      const double temperature = first_temperature / (1 + done * (first_temperature / last_temperature - 1));
      draft next = now_;
      tasks_ += cost_of_a_move;
      bool moved = false;
      for (int i = 0; i < 20 && !moved; ++i) {
        moved = move(next) && keeps_pins(next);
        if (!moved) next = now_;
      }
      if (!moved) continue;
      if (below(4) == 0) {
        draft further = next;
        if (move(further) && keeps_pins(further)) next = std::move(further);
      }
      const double u = unit(), luck = 3 * u * u;
      if (now_score_.first > 0) {
        const cost c = score(next, {});
        if (c.first <= now_score_.first + temperature * luck) take(std::move(next), c);
        continue;
      }
      const double most = now_score_.second + std::abs(now_score_.second) * temperature * luck;
      const cost c = score(next, only_latency_ ? most : std::optional<double>());
      if (c.first <= 0 && c.second <= most) take(std::move(next), c);
    }
  }

  /// Gives the best draft the simplest policy and rules that are no worse.
  void simplify() {
    const auto try_out = [&](draft d) {
      const cost c = score(d, {});
      if (c <= best_score_) best_ = std::move(d), best_score_ = c;
    };
    if (best_score_.first > 0) return;
    for (const sharing policy : {sharing::exclusive, sharing::fair_share}) {
      draft d = best_;
      d.policy = policy;
      if (!owns_network_ && best_.policy != policy) try_out(std::move(d));
    }
    for (std::size_t i = 0; i < best_.rules.size(); ++i) {
      draft d = best_;
      d.rules[i] = partition::ready_rule::path;
      if (d.rules != best_.rules) try_out(std::move(d));
    }
  }

  [[nodiscard]] const draft& best() const { return best_; }
  [[nodiscard]] const cost& best_cost() const { return best_score_; }
  [[nodiscard]] long long tasks() const { return tasks_; }

 private:
  static constexpr long long cost_of_a_move = 10;  ///< in tasks
  static constexpr sharing policies[] = {sharing::fair_share, sharing::exclusive, sharing::per_link};

  /// Begins with the best of some ramps of sizes under each network policy: unequal sizes fill and drain a pipeline faster.
  void settle() {
    for (const double ramp : {0.0, 0.25, 0.45}) {  // part of the passes in which sizes rise, and in which they fall
      draft d = best_;
      if (ramp > 0 && (equal_ || !shape(d.sizes, ramp))) continue;
      for (const sharing policy : policies) {
        d.policy = policy;
        if (owns_network_ || d == now_) continue;
        const cost c = score(d, {});
        if (c < best_score_) best_ = d, best_score_ = c;
      }
    }
    now_ = best_;
    now_score_ = best_score_;
  }
  /// Gives as many passes sizes that rise and fall in a ramp; returns false if one would be too large.
  [[nodiscard]] bool shape(std::vector<int>& sizes, double ramp) const {
    const auto count = static_cast<double>(sizes.size());
    std::vector<double> until{0};
    for (double i = 0; i < count; ++i)
      until.push_back(until.back() + std::min({1.0, (i + 1) / (ramp * count), (count - i) / (ramp * count)}));
    std::vector<int> other;
    int given = 0;
    for (std::size_t i = 1; i <= sizes.size(); ++i) {
      const int behind = static_cast<int>(sizes.size() - i);
      const int to =
          std::clamp(static_cast<int>(std::lround(problem_.job.batch * until[i] / until.back())), given + 1, problem_.job.batch - behind);
      other.push_back(to - given);
      given = to;
    }
    if (*std::ranges::max_element(other) > largest_) return false;
    sizes = std::move(other);
    return true;
  }

  cost score(const draft& d, std::optional<double> most_s) {
    const partition::draft_estimate e = most_s ? replay_(d, *most_s) : replay_(d);
    tasks_ += replay_.tasks();
    if (e.too_much > 0 || !(e.response_s() < std::numeric_limits<double>::infinity())) {
      // A run that is too slow, or that a full memory stops, counts as the least overflow.
      return {e.too_much > 0 ? e.too_much : 0, std::numeric_limits<double>::infinity()};
    }
    return {0, only_latency_ ? e.response_s() : objective_.score(e.times, joules(e.energy_J))};
  }
  void take(draft&& d, const cost& c) {
    now_ = std::move(d);
    now_score_ = c;
    if (c < best_score_) best_ = now_, best_score_ = c;
  }

  std::uint64_t next() {  // SplitMix64
    std::uint64_t z = (random_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

  [[nodiscard]] std::size_t last(const draft& d, std::size_t i) const { return i + 1 < d.stages.size() ? d.stages[i + 1].first : blocks_; }

  [[nodiscard]] bool keeps_pins(const draft& d) const {
    for (std::size_t i = 0; i < d.stages.size() && pins_.any(); ++i) {
      if (!pins_.allow(d.stages[i].first, last(d, i), d.stages[i].device)) return false;
    }
    return true;
  }

  /// Joins neighbours on one device; returns false if a device has too many stages.
  [[nodiscard]] bool tidy(draft& d) const {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < d.stages.size(); ++i) {
      if (kept > 0 && d.stages[kept - 1].device == d.stages[i].device) continue;
      d.stages[kept++] = d.stages[i];
    }
    d.stages.resize(kept);
    d.stages.front().first = 0;
    return !training_ || std::ranges::all_of(d.stages, [&](const auto& s) {
      return std::ranges::count(d.stages, s.device, &draft::part::device) <= options_.slots;
    });
  }

  [[nodiscard]] bool move(draft& d) {
    const std::size_t kind = below(100);
    if (kind < 40) return move_boundaries(d);
    if (kind < 64) return move_devices(d, kind);
    if (kind < 90) return equal_ ? other_size(d) : move_samples(d, kind);
    const std::size_t s = below(d.stages.size());
    if (kind < 93 && !owns_network_) {
      return std::exchange(d.policy, policies[below(3)]) != d.policy;
    }
    if (kind >= 98 && training_ && problem_.job.memory_savers.recompute) {
      d.stages[s].recompute = !d.stages[s].recompute;
      return true;
    }
    partition::ready_rule& rule = d.rules[d.stages[s].device.index()];
    return std::exchange(rule, partition::ready_rules[below(4)]) != rule;
  }

  /// Moves one boundary, or several in a row, by 1, 2, 4 or 8 blocks.
  [[nodiscard]] bool move_boundaries(draft& d) {
    if (d.stages.size() < 2) return false;
    const std::size_t i = 1 + below(d.stages.size() - 1), j = below(3) == 0 ? i + below(d.stages.size() - i) : i;
    const std::size_t by = std::size_t{1} << below(4);
    const bool up = below(2) == 0;
    if (up ? d.stages[j].first + by >= last(d, j) : d.stages[i].first < d.stages[i - 1].first + 1 + by) return false;
    for (std::size_t k = i; k <= j; ++k) d.stages[k].first = up ? d.stages[k].first + by : d.stages[k].first - by;
    return true;
  }

  [[nodiscard]] bool move_devices(draft& d, std::size_t kind) {
    const std::size_t count = d.stages.size(), i = below(count), j = below(count);
    const device_id other(below(problem_.cluster.size()));
    if (kind < 46) {  // two stages swap devices, and neighbours maybe lengths
      if (d.stages[i].device == d.stages[j].device) return false;
      std::swap(d.stages[i].device, d.stages[j].device);
      if ((j == i + 1 || i == j + 1) && below(2) == 0) {
        const std::size_t a = std::min(i, j);
        d.stages[a + 1].first = d.stages[a].first + (last(d, a + 1) - d.stages[a + 1].first);
      }
      return tidy(d);
    }
    if (kind < 52) return std::exchange(d.stages[i].device, other) != other && tidy(d);
    if (kind < 60) {  // cut a stage in two
      const std::size_t length = last(d, i) - d.stages[i].first;
      if (length < 2) return false;
      draft::part behind = d.stages[i];
      behind.first += 1 + below(length - 1);
      if (behind.device == other) return false;
      (below(2) == 0 ? behind : d.stages[i]).device = other;
      d.stages.insert(d.stages.begin() + static_cast<std::ptrdiff_t>(i) + 1, behind);
      return tidy(d);
    }
    if (count < 2) return false;
    d.stages.erase(d.stages.begin() + static_cast<std::ptrdiff_t>(i));
    return tidy(d);
  }

  [[nodiscard]] bool other_size(draft& d) {
    const int size = sizes_[below(sizes_.size())];
    if (size == d.sizes.front()) return false;
    d.sizes.assign(static_cast<std::size_t>(problem_.job.batch / size), size);
    return true;
  }

  [[nodiscard]] bool move_samples(draft& d, std::size_t kind) {
    auto& sizes = d.sizes;
    const std::size_t count = sizes.size(), i = below(count), j = below(count);
    if (kind < 76) {  // a sample from one microbatch to another
      if (i == j || sizes[i] < 2 || sizes[j] >= largest_) return false;
      --sizes[i], ++sizes[j];
      return true;
    }
    if (kind < 81) {  // one microbatch becomes two
      if (sizes[i] < 2 || count >= most_passes_) return false;
      const int first = 1 + static_cast<int>(below(static_cast<std::size_t>(sizes[i]) - 1));
      sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(i), first);
      sizes[i + 1] -= first;
      return true;
    }
    if (kind < 86) {  // two become one
      if (i + 1 >= count || sizes[i] + sizes[i + 1] > largest_) return false;
      sizes[i] += sizes[i + 1];
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return true;
    }
    return resample(sizes, static_cast<int>(count) + static_cast<int>(below(7)) - 3);
  }

  /// Gives the samples to another number of microbatches, in a ramp of the same shape.
  [[nodiscard]] bool resample(std::vector<int>& sizes, int count) const {
    const int batch = problem_.job.batch;
    if (count < 1 || count > batch || count == static_cast<int>(sizes.size()) || static_cast<std::size_t>(count) > most_passes_)
      return false;
    std::vector<int> other;
    int given = 0, before = 0;
    std::size_t k = 0;
    for (int i = 1; i <= count; ++i) {
      const double at = static_cast<double>(i) * static_cast<double>(sizes.size()) / count;
      while (k + 1 < sizes.size() && static_cast<double>(k + 1) <= at) before += sizes[k++];
      const double samples = before + (at - static_cast<double>(k)) * sizes[k];
      const int to = std::clamp(i == count ? batch : static_cast<int>(std::lround(samples)), given + 1, batch - (count - i));
      if (to - given > largest_) return false;
      other.push_back(to - given);
      given = to;
    }
    sizes = std::move(other);
    return true;
  }

  const planning_problem& problem_;
  const any_objective& objective_;
  partition::draft_replay replay_;
  const draft_search_options& options_;
  const partition::block_pins& pins_;
  std::uint64_t random_;
  std::size_t blocks_, most_passes_ = 0;
  int largest_;
  std::vector<int> sizes_;
  bool training_ = false, equal_ = false, owns_network_ = false, only_latency_ = true;
  draft now_, best_;
  cost now_score_, best_score_;
  long long tasks_ = 0;
};

/// Returns pipelines for inference and generation that take the least time for one microbatch, all devices in turn as often as they like.
/// Memory has a price on each device, which rises while the device is too full (subgradient steps).
///
/// Complexity  O(rounds x blocks x devices^2).   Source  ours: a shortest path with Lagrangian multipliers.
HETPLAN_INLINE std::vector<partition::pipeline_draft> alternating_drafts(const planning_problem& problem, const partition::search_tables& t,
                                                                         int size) {
  constexpr int rounds = 200;
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::size_t blocks = t.sequence.size(), devices = problem.cluster.size();
  const double sequences = problem.job.workload.mode == mode::generation ? problem.job.batch : 0;
  std::vector<double> held(blocks), crossing(blocks, 0);  // bytes
  for (std::size_t b = 0; b < blocks; ++b) {
    held[b] = t.table.state_bytes(b, b + 1) + sequences * t.table.cache_bytes(b, b + 1);
    if (b > 0) crossing[b] = size * t.cuts.bytes_in(b, blocks).first;
  }
  const std::vector<double> bytes_of = held;
  double activations = 0;  // of one block at a time
  for (std::size_t b = 0; b < blocks; ++b) activations = std::max(activations, size * t.table.activation_bytes(b, b + 1));
  std::vector<std::vector<transfer_cost>> link(devices, std::vector<transfer_cost>(devices));
  std::vector<double> limit, price(devices, 0);
  double slowest_s = 0;
  for (std::size_t a = 0; a < devices; ++a) {
    double room = t.cluster[device_id(a)].memory_for_layers().value();
    for (const memory_tier& tier : t.cluster[device_id(a)].tiers) room += tier.memory.value();
    limit.push_back(std::max(1.0, room - activations));
    slowest_s = std::max(slowest_s, t.whole_model_s(device_id(a)) * size);
    for (std::size_t b = 0; b < devices; ++b) {
      if (a != b) link[a][b] = peak_transfer(problem.cluster.network(), device_id(a), device_id(b));
    }
  }
  std::vector<partition::pipeline_draft> found;
  std::vector<double> time_s;  // by block, device
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t d = 0; d < devices; ++d) time_s.push_back(t.table.time(b, b + 1, device_id(d), size).total_s);
    // Equal blocks would all change devices at the same price.
    held[b] *= 1 + 0.1 * static_cast<double>(b) / static_cast<double>(blocks);
  }
  std::vector<std::vector<std::size_t>> from(blocks, std::vector<std::size_t>(devices));
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> best(devices, 0);
    for (std::size_t b = 0; b < blocks; ++b) {
      std::vector<double> next(devices, inf);
      for (std::size_t d = 0; d < devices; ++d) {
        for (std::size_t before = 0; before < devices; ++before) {
          const double sent_s = b == 0 || before == d ? 0 : link[before][d].time_s(crossing[b]);
          if (b == 0 && before != d) continue;
          if (best[before] + sent_s < next[d]) next[d] = best[before] + sent_s, from[b][d] = before;
        }
        next[d] += t.pins.allow(b, b + 1, device_id(d)) ? time_s[b * devices + d] + price[d] * held[b] : inf;
      }
      best = std::move(next);
    }
    std::size_t at = static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
    if (!(best[at] < inf)) return found;
    partition::pipeline_draft d;
    std::vector<double> full(devices, 0);
    for (std::size_t b = blocks; b-- > 0;) {
      full[at] += bytes_of[b];
      const std::size_t before = from[b][at];
      if (b == 0 || before != at) d.stages.insert(d.stages.begin(), {b, device_id(at)});
      at = before;
    }
    bool fits = true;
    for (std::size_t x = 0; x < devices; ++x) {
      const double too_much = full[x] / limit[x] - 1;
      fits = fits && too_much <= 0;
      price[x] = std::max(0.0, price[x] + slowest_s / limit[x] * std::clamp(too_much, -0.5, 0.5) / (2 + 0.5 * round));
    }
    d.sizes.assign(static_cast<std::size_t>(problem.job.batch / size), size);
    d.rules.assign(devices, partition::ready_rule::path);
    if (fits && (found.empty() || found.back() != d)) found.push_back(std::move(d));
  }
  return found;
}

/// Returns the best pipelines by the folded step law, cut at few boundaries, for few, some and many equal microbatches.
HETPLAN_INLINE std::vector<partition::pipeline_draft> folded_drafts(const planning_problem& problem, const partition::search_tables& t,
                                                                    const draft_search_options& options) {
  partition::folded_options how{.slots = options.slots, .labels = 1, .drafts = 2};
  std::vector<std::pair<double, device_id>> speed;
  for (const device& d : problem.cluster.devices()) speed.emplace_back(t.whole_model_s(d.id), d.id);
  sort_by(speed, [](const auto& x) { return x.first; });
  for (const device& d : problem.cluster.devices()) {
    if (t.pins.is_pinned_to(d.id)) how.devices.push_back(d.id);
  }
  for (const auto& [s, d] : speed) {
    if (how.devices.size() < options.devices && !t.pins.is_pinned_to(d)) how.devices.push_back(d);
  }
  const std::size_t blocks = t.sequence.size();
  const job& j = problem.job;
  std::vector<partition::pipeline_draft> drafts;
  if (blocks == 1) {
    const int size = j.candidate_microbatch_sizes().front();
    for (const device_id d : how.devices) {
      if (!t.pins.allow(0, 1, d)) continue;
      drafts.push_back({.stages = {{0, d}}, .sizes = std::vector<int>(static_cast<std::size_t>(j.batch / size), size), .rules = {}});
      drafts.back().rules.assign(problem.cluster.size(), partition::ready_rule::path);
    }
    return drafts;
  }
  how.recompute = j.memory_savers.recompute;
  // Boundaries about equally far apart in time, each where the fewest bytes cross; and those before the last block and behind the first.
  std::vector<double> until{0};
  for (std::size_t b = 0; b < blocks; ++b) until.push_back(until.back() + t.table.time(b, b + 1, device_id(0), 1).total_s);
  std::vector<std::size_t> lightest;
  for (std::size_t b = 1; b < blocks; ++b) {
    const auto window = [&](std::size_t x) { return std::floor(until[x] / until.back() * static_cast<double>(options.boundaries)); };
    const auto crossing = [&](std::size_t x) { return t.cuts.bytes_in(x, blocks).first; };
    if (!lightest.empty() && window(lightest.back()) == window(b)) {
      if (crossing(b) < crossing(lightest.back())) lightest.back() = b;
    } else {
      lightest.push_back(b);
    }
  }
  lightest.insert(lightest.end(), {std::size_t{1}, blocks - 1});
  for (std::size_t b = 1; b < blocks; ++b) {
    if (t.pins.of(b - 1) != t.pins.of(b)) lightest.push_back(b);
  }
  sort_distinct(lightest);
  how.boundaries = std::move(lightest);
  const int least = (j.batch + j.largest_share() - 1) / j.largest_share();
  int with_drafts = 0;
  for (int count = 4; with_drafts < 3 && (count == 4 || count < 2 * j.batch) && count <= static_cast<int>(options.most_passes);
       count *= 2) {
    const int passes = std::clamp(count, std::min(least, j.batch), j.batch);
    std::vector<int> sizes;
    if (j.workload.mode == mode::generation) {
      const auto all = j.candidate_microbatch_sizes();
      const int size = *std::ranges::min_element(all, {}, [&](int b) { return std::abs(j.batch / b - count); });
      sizes.assign(static_cast<std::size_t>(j.batch / size), size);
    } else {
      for (int i = 0; i < passes; ++i) sizes.push_back(static_cast<int>(1LL * j.batch * (i + 1) / passes - 1LL * j.batch * i / passes));
    }
    std::vector<partition::folded_draft> found = partition::folded_dp(problem, t, sizes, how);
    with_drafts += found.empty() ? 0 : 1;
    for (partition::folded_draft& f : found) drafts.push_back(std::move(f.draft));
  }
  return drafts;
}

}  // namespace detail

HETPLAN_INLINE std::optional<partition::pipeline_draft> draft_of(const plan& p, const partition::search_tables& t) {
  if (p.pipeline_count() > 1 || p.stages.empty()) return {};
  std::vector<std::size_t> stage_of(t.model.size(), p.stages.size());
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    for (const layer_id l : p.stages[i].layers) stage_of[l.index()] = i;
  }
  partition::pipeline_draft d;
  std::vector<std::size_t> order;
  for (std::size_t b = 0; b < t.sequence.size(); ++b) {
    const std::size_t s = stage_of[t.sequence.blocks[b].front().index()];
    if (!order.empty() && s == order.back()) continue;
    if (s == p.stages.size() || std::ranges::find(order, s) != order.end()) return {};
    order.push_back(s);
    d.stages.push_back({b, p.stages[s].devices.front().device, p.stages[s].recomputes()});
  }
  // Devices that share a stage get a part of its blocks each.
  for (std::size_t k = d.stages.size(); k-- > 0;) {
    const std::size_t first = d.stages[k].first, last = k + 1 < d.stages.size() ? d.stages[k + 1].first : t.sequence.size();
    const auto& devices = p.stages[order[k]].devices;
    const std::size_t count = std::min(devices.size(), last - first);
    for (std::size_t i = count; i-- > 1;) {
      partition::pipeline_draft::part more = d.stages[k];
      more.first = first + (last - first) * i / count;
      more.device = devices[i].device;
      d.stages.insert(d.stages.begin() + static_cast<std::ptrdiff_t>(k) + 1, more);
    }
  }
  for (std::size_t k = 1; k < d.stages.size(); ++k) {
    if (d.stages[k].device == d.stages[k - 1].device) return {};
  }
  if (p.stages.front().cuts.empty()) {
    d.sizes.assign(static_cast<std::size_t>(p.microbatches), p.microbatch_size);
  } else {
    const auto& cuts = p.stages.front().cuts.forward;
    for (std::size_t i = 1; i < cuts.size(); ++i) d.sizes.push_back(static_cast<int>(cuts[i] - cuts[i - 1]));
  }
  d.rules.assign(t.cluster.size(), partition::ready_rule::path);
  d.policy = p.sharing_policy == sharing::priority || p.sharing_policy == sharing::unlimited ? sharing::fair_share : p.sharing_policy;
  return d;
}

namespace detail {

/// Puts every block that is pinned to a device there; the rest of its stage stays where it is.
HETPLAN_INLINE void keep_pins(partition::pipeline_draft& d, const partition::search_tables& t) {
  if (!t.pins.any()) return;
  std::vector<partition::pipeline_draft::part> stages;
  for (std::size_t i = 0; i < d.stages.size(); ++i) {
    const std::size_t last = i + 1 < d.stages.size() ? d.stages[i + 1].first : t.sequence.size();
    for (std::size_t b = d.stages[i].first; b < last; ++b) {
      partition::pipeline_draft::part mine = d.stages[i];
      mine.first = b;
      if (t.pins.of(b).valid()) mine.device = t.pins.of(b);
      if (stages.empty() || stages.back().device != mine.device) stages.push_back(mine);
    }
  }
  d.stages = std::move(stages);
}

/// Returns every pipeline of equal microbatches that keeps the pins, if there are few.
[[nodiscard]] HETPLAN_INLINE std::vector<partition::pipeline_draft> all_drafts(const planning_problem& problem,
                                                                               const partition::search_tables& t) {
  constexpr double most = 3000;
  const std::size_t blocks = t.sequence.size(), devices = problem.cluster.size();
  const auto sizes = problem.job.candidate_microbatch_sizes();
  double count = static_cast<double>(sizes.size());
  for (std::size_t b = 0; b < blocks; ++b) count *= t.pins.of(b).valid() ? 1 : static_cast<double>(devices);
  std::vector<partition::pipeline_draft> all;
  if (count > most) return all;
  std::vector<std::size_t> on(blocks, 0);
  for (bool more = true; more;) {
    partition::pipeline_draft d;
    for (std::size_t b = 0; b < blocks; ++b) {
      const device_id at = t.pins.of(b).valid() ? t.pins.of(b) : device_id(on[b]);
      if (d.stages.empty() || d.stages.back().device != at) d.stages.push_back({b, at});
    }
    d.rules.assign(devices, partition::ready_rule::path);
    for (const int size : sizes) {
      d.sizes.assign(static_cast<std::size_t>(problem.job.batch / size), size);
      all.push_back(d);
    }
    more = false;
    for (std::size_t b = 0; b < blocks && !more; ++b) {  // a counter whose digits are the devices of free blocks
      if (t.pins.of(b).valid()) continue;
      on[b] = (on[b] + 1) % devices;
      more = on[b] != 0;
    }
  }
  return all;
}

}  // namespace detail

HETPLAN_INLINE std::vector<partition::pipeline_draft> search_drafts(const planning_problem& problem, const any_objective& objective,
                                                                    const partition::search_tables& tables, const std::vector<plan>& starts,
                                                                    step_budget& budget, long long steps,
                                                                    const draft_search_options& options) {
  const job& j = problem.job;
  if (options.slots < 1 || j.only_orders || (j.workload.mode == mode::training && j.schedule == schedule_kind::gpipe)) return {};
  std::vector<partition::pipeline_draft> drafts;
  key_index orders;  // of devices
  for (const plan& p : starts) {
    auto d = draft_of(p, tables);
    if (!d || orders.size() == options.starts) continue;
    key_parts devices;
    for (const auto& s : d->stages) devices.emplace_back(s.device);
    if (orders.insert(devices)) drafts.push_back(*std::move(d));
  }
  for (auto& d : detail::folded_drafts(problem, tables, options)) drafts.push_back(std::move(d));
  const bool training = j.workload.mode == mode::training;
  if (!training) {
    for (const int size : {j.candidate_microbatch_sizes().front(), j.candidate_microbatch_sizes().back()}) {
      auto more = detail::alternating_drafts(problem, tables, size);
      if (more.size() > 3) more.erase(more.begin(), more.end() - 3);
      for (auto& d : more) drafts.push_back(std::move(d));
    }
  }
  for (partition::pipeline_draft& d : drafts) detail::keep_pins(d, tables);
  if (tables.pins.any()) {
    for (auto& d : detail::all_drafts(problem, tables)) drafts.push_back(std::move(d));
  }
  const auto fits = [&](const partition::pipeline_draft& d) {
    const auto stages_of = [&](device_id x) { return std::ranges::count(d.stages, x, &partition::pipeline_draft::part::device); };
    return std::ranges::all_of(d.sizes, [&](int b) { return b <= tables.table.max_share(); }) &&
           (!training || std::ranges::all_of(d.stages, [&](const auto& s) { return stages_of(s.device) <= options.slots; }));
  };
  std::vector<std::unique_ptr<detail::draft_annealer>> annealers;
  std::uint64_t seed = options.seed;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const auto here = drafts.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(drafts.begin(), here, *here) != here || !fits(*here)) continue;
    annealers.push_back(std::make_unique<detail::draft_annealer>(problem, objective, tables, *here, options, seed));
  }
  // A quarter of the effort for all; then equal parts for the best half, the best quarter, and so on.
  constexpr double hot = 0.08, warm = 0.05, cold = 0.002;
  const long long tasks = steps * replayed_per_step;
  std::vector<std::pair<detail::draft_annealer::cost, partition::pipeline_draft>> found;
  const auto drop_to = [&](std::size_t count) {
    for (; annealers.size() > count; annealers.pop_back()) {
      detail::draft_annealer& a = *annealers.back();
      a.simplify();
      budget.spend(a.tasks() / replayed_per_step);
      if (a.best_cost().first <= 0 && a.best_cost().second < std::numeric_limits<double>::infinity())
        found.emplace_back(a.best_cost(), a.best());
    }
  };
  const auto improve = [&](long long all, double from, double to) {
    numbered_work work(annealers.size(), options.threads, [&](std::size_t i) {
      annealers[i]->run(all / static_cast<long long>(annealers.size()), from, to);
      return 0;
    });
    for (std::size_t i = 0; i < annealers.size(); ++i) static_cast<void>(work.take(i));
    sort_by(annealers, [](const auto& a) { return a->best_cost(); });
  };
  sort_by(annealers, [](const auto& a) { return a->best_cost(); });
  drop_to(options.first_seeds);
  improve(tasks / 4, hot, warm);
  drop_to(options.seeds);
  int rounds = 0;
  for (std::size_t n = annealers.size(); n > 0; n /= 2) ++rounds;
  for (int r = 0; r < rounds; ++r) {
    const auto temperature = [&](int round) { return warm / (1 + (warm / cold - 1) * round / rounds); };
    improve(tasks * 3 / 4 / rounds, temperature(r), temperature(r + 1));
    drop_to(annealers.size() / 2);
  }
  sort_by(found, [](const auto& f) { return f.first; });
  std::vector<partition::pipeline_draft> best;
  for (auto& [cost, d] : found) {
    if (std::ranges::find(best, d) == best.end()) best.push_back(std::move(d));
  }
  return best;
}

}  // namespace hetplan
