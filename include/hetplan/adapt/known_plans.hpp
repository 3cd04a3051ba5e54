// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a policy remembers: the plans it has met, and what they do under which conditions.

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/iteration.hpp>
#include <hetplan/adapt/reschedule.hpp>
#include <hetplan/adapt/wish.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// Plans that can be tried under any conditions. The same question is simulated once, while it is remembered: conditions of a
/// long timeline need not come again.
///
/// Source  the plans that Dora's adapter keeps (section 4.3); that they are tried again under new conditions is ours.
template <class Problem>
class known_plans {
 public:
  /// The problem must outlive it.
  explicit known_plans(const Problem& problem) : problem_(&problem) {}

  /// Takes a plan in, unless it is known; its index.  Throws  as tasks::expand.
  std::size_t add(plan p) {
    p.predicted.reset();
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].runner.what() == p) return touch(i);
    }
    all_.push_back({plan_runner<Problem>(*problem_, std::move(p)), {}, {}, 0});
    return touch(all_.size() - 1);
  }
  /// It has been of use: such plans are forgotten last.
  std::size_t touch(std::size_t i) {
    all_[i].used = ++uses_;
    return i;
  }
  /// Forgets those beyond `most` that have been of no use for longest. True: what is left has other indices.
  bool forget(std::size_t most) {
    if (all_.size() <= most) return false;
    std::vector<long long> uses;
    for (const entry& e : all_) uses.push_back(e.used);
    std::nth_element(uses.begin(), uses.end() - static_cast<std::ptrdiff_t>(most), uses.end());
    const long long oldest = uses[uses.size() - most];
    std::vector<std::optional<std::size_t>> now(all_.size());
    std::size_t left = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].used >= oldest) now[i] = left++;
    }
    std::erase_if(all_, [&](const entry& e) { return e.used < oldest; });
    for (entry& e : all_) {
      std::erase_if(e.scheduled, [&](const auto& found) { return found.second && !now[*found.second]; });
      for (auto& [moment, found] : e.scheduled) {
        if (found) found = now[*found];
      }
    }
    return true;
  }
  /// The same plan with its transfers scheduled for the moment (reschedule), as another known plan; nothing where that
  /// finds none.  Complexity: that of adapt::reschedule, if the moment is new.
  std::optional<std::size_t> reschedule(std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic,
                                        const qoe_target& wanted, const schedule::refine_options& options) {
    std::vector<double> k = conditions_of(i, offered(now, traffic, problem_->cluster.network()));
    k.push_back(wanted.latency ? wanted.latency->value() : -1);
    const auto it = all_[i].scheduled.find(k);
    if (it != all_[i].scheduled.end()) return it->second;
    std::optional<std::size_t> found;
    if (auto p = adapt::reschedule(*problem_, all_[i].runner.what(), now, traffic, wanted, options)) {
      const std::size_t before = size();
      found = add(std::move(*p));
      if (*found == before) all_[*found].used -= never_used;  // made for the moment: forgotten first, unless it is of use
    }
    if (all_[i].scheduled.size() >= most_remembered) all_[i].scheduled.clear();
    all_[i].scheduled.emplace(std::move(k), found);
    return found;
  }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const plan& operator[](std::size_t i) const { return all_[i].runner.what(); }
  [[nodiscard]] std::span<const device_id> devices(std::size_t i) const { return all_[i].runner.devices(); }
  /// Answers that are kept, of all plans: at most 2 * `most_remembered` for each.
  [[nodiscard]] std::size_t remembered() const {
    std::size_t sum = 0;
    for (const entry& e : all_) sum += e.seen.size() + e.scheduled.size();
    return sum;
  }
  static constexpr std::size_t most_remembered = 256;

  /// The index of the plan that serves best, of all or of some; nothing if none of them can run. Ties: the first.
  /// Complexity  that of try_out for each.
  [[nodiscard]] std::optional<std::size_t> best(const wish& wanted, const conditions& now, std::span<const foreign_traffic> traffic,
                                                std::optional<std::span<const plan>> among = {}) {
    std::optional<std::size_t> found;
    serving least;
    const auto offer = [&](std::size_t i) {
      const iteration each = try_out(i, now, traffic);
      const serving x = wanted.of(each);
      if (!each.ended || (found && x >= least)) return;
      found = i;
      least = x;
    };
    if (among) {
      for (const plan& p : *among) offer(add(p));
    } else {
      for (std::size_t i = 0; i < size(); ++i) offer(i);
    }
    if (found) touch(*found);
    return found;
  }

  /// How well a plan serves.  Complexity: that of try_out.
  [[nodiscard]] serving serves(const wish& wanted, std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic) {
    return wanted.of(try_out(i, now, traffic));
  }
  /// An iteration while nothing changes; infinite where the plan cannot run.  Complexity: one simulation, if it is new.
  [[nodiscard]] iteration try_out(std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic) {
    entry& e = all_[i];
    if (!traffic.empty()) return e.runner.rehearse(now, traffic);
    if (e.seen.size() >= most_remembered) e.seen.clear();
    auto [it, is_new] = e.seen.try_emplace(conditions_of(i, now));
    if (is_new) it->second = e.runner.rehearse(now);
    return it->second;
  }

 private:
  /// The conditions that a plan depends on: its own devices, and the network.
  [[nodiscard]] std::vector<double> conditions_of(std::size_t i, const conditions& now) const {
    std::vector<double> k;
    for (const device_id d : devices(i)) k.push_back(now.present[d.index()] != 0 ? now.speed[d.index()] : -1);
    for (const bytes_per_second c : now.capacity) k.push_back(c.value());
    return k;
  }

  static constexpr long long never_used = 1LL << 62;
  struct entry {
    plan_runner<Problem> runner;
    std::map<std::vector<double>, iteration> seen;  ///< by conditions_of
    std::map<std::vector<double>, std::optional<std::size_t>> scheduled;
    long long used = 0;
  };

  const Problem* problem_;
  std::vector<entry> all_;
  long long uses_ = 0;
};

}  // namespace HETPLAN_NAMESPACE::adapt
