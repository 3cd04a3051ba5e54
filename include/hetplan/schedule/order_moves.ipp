// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_moves.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::schedule::detail {

/// Orders of devices as they are, replayed after each change.
class moving_orders {
 public:
  moving_orders(const tick_table& t, order_goal goal, const std::vector<partial_orders::task>& sequence, ticks target)
      : goal_(goal), target_(target), state_(t), orders_(t.devices.size()), next_(t.devices.size()), waits_(t.devices.size()) {
    for (const auto& a : sequence) orders_[t.stages[a.stage].device].push_back(a);
  }

  struct value {
    ticks cost = never;  ///< what the search goes by
    ticks goal = never;
  };

  /// `never` where the orders do not end or memory does not allow them.
  [[nodiscard]] value run() {
    state_ = empty_;
    std::fill(next_.begin(), next_.end(), 0);
    for (auto& w : waits_) w.clear();
    sequence_.clear();
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t d = 0; d < orders_.size(); ++d) {
        for (; next_[d] < orders_[d].size(); ++next_[d]) {
          const auto a = orders_[d][next_[d]];
          const ticks arrival = state_.arrival(a.stage, a.what);
          if (arrival == never) break;
          if (a.what == 0 && !state_.has_room(a.stage, room::for_itself)) return {};
          if (arrival > state_.free_at(d) && state_.began(d) != never) waits_[d].push_back(next_[d]);
          state_.give(a, std::max(arrival, state_.free_at(d)));
          sequence_.push_back(a);
          moved = true;
        }
      }
    }
    if (state_.left() > 0) return {};
    value v{0, 0};
    for (std::size_t d = 0; d < orders_.size(); ++d) {
      if (orders_[d].empty()) continue;
      const ticks mine = state_.free_at(d) - (goal_ == order_goal::makespan ? 0 : state_.began(d));
      v.goal = std::max(v.goal, mine);
      v.cost += std::max(ticks{0}, mine - target_);
    }
    v.cost += static_cast<ticks>(orders_.size()) * (v.goal - target_);
    return v;
  }

  std::vector<std::vector<partial_orders::task>>& orders() { return orders_; }
  [[nodiscard]] const std::vector<partial_orders::task>& sequence() const { return sequence_; }
  /// Positions of a device's tasks before which it waited.
  [[nodiscard]] const std::vector<std::size_t>& waits(std::size_t device) const { return waits_[device]; }

 private:
  order_goal goal_;
  ticks target_;
  partial_orders state_, empty_{state_};
  std::vector<std::vector<partial_orders::task>> orders_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<std::size_t>> waits_;
  std::vector<partial_orders::task> sequence_;
};

HETPLAN_INLINE found_orders improved_orders(const tick_table& t, order_goal goal, const found_orders& given, ticks target, long long& steps,
                                            std::uint64_t seed) {
  moving_orders moving(t, goal, given.sequence, target);
  found_orders best = given;
  auto now = moving.run();
  if (now.goal == never) return best;
  std::vector<std::vector<std::size_t>> waits(t.devices.size());
  const auto note_waits = [&] {
    for (std::size_t d = 0; d < waits.size(); ++d) waits[d] = moving.waits(d);
  };
  note_waits();
  const auto random = [&](std::size_t n) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>((seed >> 33U) % n);
  };
  constexpr std::size_t farthest = 6;
  while (steps > 0 && best.value > target) {
    --steps;
    const std::size_t d = random(t.devices.size());
    auto& order = moving.orders()[d];
    if (order.size() < 2) continue;
    std::size_t from = random(order.size());
    if (!waits[d].empty() && random(4) != 0) from = waits[d][random(waits[d].size())] + random(farthest);
    const std::size_t far = 1 + random(farthest);
    std::size_t to = random(2) == 0 ? from - std::min(from, far) : from + far;
    from = std::min(from, order.size() - 1);
    to = std::min(to, order.size() - 1);
    if (from == to || order[from] == order[to]) continue;
    const auto shift = [&](std::size_t a, std::size_t b) {
      const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
      if (a < b) std::rotate(at(a), at(a + 1), at(b + 1));
      else std::rotate(at(b), at(a), at(a + 1));
    };
    shift(from, to);
    const auto next = moving.run();
    steps -= static_cast<long long>(moving.sequence().size());
    if (next.goal == never || next.cost > now.cost) {
      shift(to, from);
      continue;
    }
    now = next;
    note_waits();
    if (now.goal < best.value) best = {moving.sequence(), now.goal};
  }
  return best;
}

}  // namespace HETPLAN_NAMESPACE::schedule::detail
