// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/solve/cheapest_tiers.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace hetplan {

namespace detail {

class tier_search {
 public:
  tier_search(std::span<const tier_item> items, double need, std::span<const double> room, long long most_nodes)
      : items_(items), slack_(1e-9 * need), room_(room.begin(), room.end()), left_(items.size()), most_nodes_(most_nodes) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      left_[i] = items[i].count;
      for (std::size_t t = 0; t < room.size(); ++t) {
        if (items[i].freed > 0 && items[i].cost_s[t] < inf) pairs_.push_back({i, t, items[i].cost_s[t] / items[i].freed});
      }
    }
    for (double& r : room_) r *= 1 + 1e-9;
    std::stable_sort(pairs_.begin(), pairs_.end(), [](const pair& a, const pair& b) { return a.ratio < b.ratio; });
    now_.assign(pairs_.size(), 0);
  }

  std::optional<tier_choice> run(double need) {
    descend(0, need, 0);
    if (!(best_s_ < inf)) return std::nullopt;
    tier_choice choice{best_s_, std::vector<std::vector<int>>(items_.size(), std::vector<int>(room_.size(), 0)), nodes_ < most_nodes_};
    for (std::size_t k = 0; k < pairs_.size(); ++k) choice.taken[pairs_[k].item][pairs_[k].tier] = best_[k];
    return choice;
  }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();
  struct pair {
    std::size_t item, tier;
    double ratio;  ///< seconds per byte
  };

  /// Returns how many more pieces of a pair fit.
  [[nodiscard]] int most_of(const pair& p) const {
    const tier_item& x = items_[p.item];
    if (x.weight <= 0) return left_[p.item];
    return static_cast<int>(std::min<double>(left_[p.item], std::floor(room_[p.tier] / x.weight)));
  }

  /// Returns a lower bound on the cost of freeing `need` bytes with the pairs from k on, each as if it had its items and tier alone.
  [[nodiscard]] double bound_from(std::size_t k, double need) const {
    double cost = 0;
    for (; k < pairs_.size() && need > slack_; ++k) {
      const double frees = most_of(pairs_[k]) * items_[pairs_[k].item].freed;
      const double part = std::min(need, frees);
      cost += part * pairs_[k].ratio;
      need -= part;
    }
    return need > slack_ ? inf : cost;
  }

  void descend(std::size_t k, double need, double cost) {
    if (need <= slack_) {
      if (cost < best_s_) {
        best_s_ = cost;
        best_ = now_;
      }
      return;
    }
    if (k == pairs_.size() || ++nodes_ > most_nodes_) return;
    if (!(cost + bound_from(k, need) < best_s_ * (1 - 1e-12))) return;
    const pair p = pairs_[k];
    const tier_item& x = items_[p.item];
    const int most = std::min(most_of(p), static_cast<int>(std::min(1e9, std::ceil((need - slack_) / x.freed))));
    for (int n = most; n >= 0; --n) {
      now_[k] = n;
      left_[p.item] -= n;
      room_[p.tier] -= n * x.weight;
      descend(k + 1, need - n * x.freed, cost + n * x.cost_s[p.tier]);
      room_[p.tier] += n * x.weight;
      left_[p.item] += n;
      if (nodes_ > most_nodes_) break;
    }
    now_[k] = 0;
  }

  std::span<const tier_item> items_;
  double slack_;
  std::vector<double> room_;  ///< left, by tier
  std::vector<int> left_;     ///< by item
  std::vector<pair> pairs_;
  std::vector<int> now_, best_;  ///< by pair
  double best_s_ = inf;
  long long nodes_ = 0, most_nodes_;
};

}  // namespace detail

HETPLAN_INLINE std::optional<tier_choice> cheapest_tiers(std::span<const tier_item> items, double need, std::span<const double> room,
                                                         long long most_nodes) {
  if (!(need > 0)) return tier_choice{0, std::vector<std::vector<int>>(items.size(), std::vector<int>(room.size(), 0))};
  double all = 0;
  for (const tier_item& i : items) all += i.count * i.freed;
  if (all < need * (1 - 1e-9)) return std::nullopt;
  return detail::tier_search(items, need, room, most_nodes).run(need);
}

}  // namespace hetplan
