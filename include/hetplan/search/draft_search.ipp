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
#include <hetplan/core/sorting.hpp>

namespace hetplan {

namespace detail {

/// One draft on its way through simulated annealing.
class draft_annealer {
 public:
  using draft = partition::pipeline_draft;

  draft_annealer(const planning_problem& problem, const any_objective& objective, const partition::search_tables& tables, draft first,
                 const draft_search_options& options, std::uint64_t seed)
      : problem_(problem), objective_(objective), replay_(problem, tables), options_(options), random_(seed),
        blocks_(tables.sequence.size()), largest_(problem.job.largest_share()), now_(std::move(first)) {
    for (int b : problem.job.candidate_microbatch_sizes()) sizes_.push_back(b);
    const auto passes = static_cast<std::size_t>((problem.job.batch + largest_ - 1) / largest_);
    most_passes_ = std::max(options.most_passes, passes);
    training_ = problem.job.workload.mode == mode::training;
    equal_ = problem.job.workload.mode == mode::generation;
    owns_network_ = !problem.models.network.as_planned() || bool{problem.models.sharing};
    only_latency_ = !objective.monotone() || (objective.score(seconds(1), joules(0)) == objective.score(seconds(1), joules(1e9)));
    replay_.estimate_energy(!only_latency_);
    now_score_ = best_score_ = score(now_, {});
    best_ = now_;
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
        moved = move(next);
        if (!moved) next = now_;
      }
      if (!moved) continue;
      if (below(4) == 0) {
        draft further = next;
        if (move(further)) next = std::move(further);
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

  [[nodiscard]] const draft& best() const { return best_; }
  [[nodiscard]] const cost& best_cost() const { return best_score_; }
  [[nodiscard]] long long tasks() const { return tasks_; }

 private:
  static constexpr long long cost_of_a_move = 10;  ///< in tasks

  cost score(const draft& d, std::optional<double> most_s) {
    const partition::draft_estimate e = most_s ? replay_(d, *most_s) : replay_(d);
    tasks_ += replay_.tasks();
    if (e.too_much > 0 || !(e.response_s < std::numeric_limits<double>::infinity())) {
      // A run that is too slow, or that a full memory stops, counts as the least overflow.
      return {e.too_much > 0 ? e.too_much : 0, std::numeric_limits<double>::infinity()};
    }
    return {0, only_latency_ ? e.response_s : objective_.score(seconds(e.response_s), joules(e.energy_J))};
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

  /// Joins neighbours on one device; returns false if a device has too many stages.
  [[nodiscard]] bool tidy(draft& d) const {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < d.stages.size(); ++i) {
      if (kept > 0 && d.stages[kept - 1].device == d.stages[i].device) continue;
      d.stages[kept++] = d.stages[i];
    }
    d.stages.resize(kept);
    d.stages.front().first = 0;
    return std::ranges::all_of(
        d.stages, [&](const auto& s) { return std::ranges::count(d.stages, s.device, &draft::part::device) <= options_.slots; });
  }

  [[nodiscard]] bool move(draft& d) {
    const std::size_t kind = below(100);
    if (kind < 40) return move_boundaries(d);
    if (kind < 64) return move_devices(d, kind);
    if (kind < 90) return equal_ ? other_size(d) : move_samples(d, kind);
    const std::size_t s = below(d.stages.size());
    if (kind < 93 && !owns_network_) {
      constexpr sharing policies[] = {sharing::fair_share, sharing::exclusive, sharing::per_link};
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
  std::uint64_t random_;
  std::size_t blocks_, most_passes_ = 0;
  int largest_;
  std::vector<int> sizes_;
  bool training_ = false, equal_ = false, owns_network_ = false, only_latency_ = true;
  draft now_, best_;
  cost now_score_, best_score_;
  long long tasks_ = 0;
};

/// Returns pipelines of the fastest devices: in both orders, with and without a second stage of the first device at the end. Stages take
/// about as long as their devices are fast.
HETPLAN_INLINE std::vector<partition::pipeline_draft> first_drafts(const planning_problem& problem, const partition::search_tables& t,
                                                                   const draft_search_options& options) {
  std::vector<std::pair<double, device_id>> speed;
  for (const device& d : problem.cluster.devices()) speed.emplace_back(t.whole_model_s(d.id), d.id);
  sort_by(speed, [](const auto& x) { return x.first; });
  const std::size_t blocks = t.sequence.size();
  const int size = problem.job.candidate_microbatch_sizes().front();
  std::vector<double> until(blocks + 1, 0);  // time of the first blocks on the fastest device
  for (std::size_t b = 0; b < blocks; ++b) until[b + 1] = until[b] + t.table.time(b, b + 1, speed.front().second, size).total_s;
  // About eight microbatches; in generation of one size.
  std::vector<int> sizes;
  const int batch = problem.job.batch;
  if (problem.job.workload.mode == mode::generation) {
    sizes.assign(static_cast<std::size_t>(batch / size), size);
  } else {
    const int most = problem.job.largest_share(), count = std::max((batch + most - 1) / most, std::min(batch, 8));
    for (int i = 0; i < count; ++i) sizes.push_back(batch * (i + 1) / count - batch * i / count);
  }
  std::vector<partition::pipeline_draft> drafts;
  const auto add = [&](std::vector<device_id> devices, bool fold) {
    std::vector<double> share;
    double all = 0, begun = 0;
    for (const device_id d : devices) all += share.emplace_back(1 / t.whole_model_s(d));
    if (fold) {
      devices.push_back(devices.front());
      share.push_back(0.3 * share.front());
      share.front() *= 0.7;
    }
    partition::pipeline_draft d;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto from = std::lower_bound(until.begin(), until.end(), begun / all * until.back() * (1 - 1e-12)) - until.begin();
      const std::size_t first = i == 0 ? 0 : std::max(static_cast<std::size_t>(from), d.stages.back().first + 1);
      if (first >= blocks) return;
      d.stages.push_back({first, devices[i]});
      begun += share[i];
    }
    d.sizes = sizes;
    d.rules.assign(problem.cluster.size(), partition::ready_rule::path);
    drafts.push_back(std::move(d));
  };
  for (std::size_t n = 1; n <= std::min(speed.size(), options.devices); ++n) {
    std::vector<device_id> devices;
    for (std::size_t i = 0; i < n; ++i) devices.push_back(speed[i].second);
    add(devices, false);
    if (n == 1) continue;
    if (options.slots > 1) add(devices, true);
    std::rotate(devices.begin(), devices.begin() + 1, devices.end());
    add(devices, false);
    std::reverse(devices.begin(), devices.end());
    if (options.slots > 1) add(devices, true);
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
    d.stages.push_back({b, p.stages[s].devices.front().device, p.stages[s].recompute});
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

HETPLAN_INLINE std::vector<partition::pipeline_draft> search_drafts(const planning_problem& problem, const any_objective& objective,
                                                                    const partition::search_tables& tables, const std::vector<plan>& starts,
                                                                    step_budget& budget, long long steps,
                                                                    const draft_search_options& options) {
  const job& j = problem.job;
  if (options.slots < 1 || j.only_orders || (j.workload.mode == mode::training && j.schedule == schedule_kind::gpipe)) return {};
  std::vector<partition::pipeline_draft> drafts;
  for (const plan& p : starts) {
    if (auto d = draft_of(p, tables)) drafts.push_back(*std::move(d));
  }
  for (auto& d : detail::first_drafts(problem, tables, options)) drafts.push_back(std::move(d));
  const auto fits = [&](const partition::pipeline_draft& d) {
    const auto stages_of = [&](device_id x) { return std::ranges::count(d.stages, x, &partition::pipeline_draft::part::device); };
    return std::ranges::all_of(d.sizes, [&](int b) { return b <= tables.table.max_share(); }) &&
           std::ranges::all_of(d.stages, [&](const auto& s) { return stages_of(s.device) <= options.slots; });
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
      const detail::draft_annealer& a = *annealers.back();
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
