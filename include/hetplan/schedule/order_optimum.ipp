// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_optimum.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace hetplan::schedule::detail {

class optimum_search {
 public:
  optimum_search(const tick_table& t, order_goal goal, const found_orders& given, long long most)
      : t_(t), outlook_(t, goal), state_(t), waits_(t.devices.size(), 0), short_of_memory_(t.devices.size(), false), most_(most) {
    best_.orders = given;
    for (std::size_t d = 0; d < t.devices.size(); ++d) {
      double all = 0;
      for (const std::size_t s : t.devices[d].stages) all += static_cast<double>(t.m) * t.stages[s].activation;
      short_of_memory_[d] = all > t.devices[d].memory;
    }
  }

  [[nodiscard]] optimum run() {
    best_.proven = outlook_.bound(state_) >= best_.orders.value || extend();
    return std::move(best_);
  }

 private:
  struct branch {
    ticks bound, sum;
    partial_orders::task task;
    ticks start;  ///< `never`: the device waits for another task than this forward
  };

  /// False: stopped.
  bool extend() {
    if (++best_.states > most_) return false;
    if (state_.left() == 0) {
      best_.orders.sequence = sequence_;
      best_.orders.value = outlook_.bound(state_);
      return true;
    }
    for (const branch& b : branches()) {
      if (b.bound >= best_.orders.value) continue;
      bool ended = true;
      const std::size_t d = t_.stages[b.task.stage].device;
      const std::uint64_t waits = waits_[d];
      if (b.start == never) {
        waits_[d] |= std::uint64_t{1} << b.task.stage;
        ended = extend();
      } else {
        waits_[d] = 0;
        const auto undo = state_.give(b.task, b.start);
        sequence_.push_back(b.task);
        if (!seen_better()) ended = extend();
        sequence_.pop_back();
        state_.take_back(b.task, undo);
      }
      waits_[d] = waits;
      if (!ended) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<branch> branches() {
    ticks first_end = never;
    partial_orders::task first;
    const auto open = [&](partial_orders::task a) {
      if (a.what == 0 && (waits_[t_.stages[a.stage].device] >> a.stage & 1U) != 0) return never;
      return state_.earliest(a, room::for_itself);
    };
    for (std::uint32_t s = 0; s < t_.stages.size(); ++s) {
      for (std::uint32_t what = 0; what < 3; ++what) {
        const ticks start = open({s, what});
        if (start < never && start + state_.length({s, what}) < first_end) {
          first_end = start + state_.length({s, what});
          first = {s, what};
        }
      }
    }
    std::vector<branch> found;
    if (first_end == never) return found;
    const std::size_t device = t_.stages[first.stage].device;
    for (const std::size_t s : t_.devices[device].stages) {
      for (std::uint32_t what = 0; what < 3; ++what) {
        const partial_orders::task a{static_cast<std::uint32_t>(s), what};
        const ticks start = open(a);
        if (start == never || (start >= first_end && !(a == first))) continue;
        const auto undo = state_.give(a, start);
        branch b{0, 0, a, start};
        b.bound = outlook_.bound(state_, &b.sum);
        state_.take_back(a, undo);
        found.push_back(b);
      }
    }
    if (first.what == 0 && short_of_memory_[device]) found.push_back({outlook_.bound(state_), never, first, never});
    std::sort(found.begin(), found.end(), [](const branch& a, const branch& b) {
      return std::tie(a.bound, a.sum, a.task.stage, a.task.what) < std::tie(b.bound, b.sum, b.task.stage, b.task.what);
    });
    return found;
  }

  [[nodiscard]] bool seen_better() {
    state_.reached(times_);
    std::uint64_t key = state_.counts_hash();
    for (const std::uint64_t w : waits_) key = (key ^ w) * 0x9e3779b97f4a7c15U;
    std::vector<entry>& same = seen_[key];
    for (const entry& e : same) {
      if (e.counts == state_.counts() && e.waits == waits_ &&
          std::equal(times_.begin(), times_.end(), e.times.begin(), [](ticks mine, ticks theirs) { return theirs <= mine; }))
        return true;
    }
    if (stored_ < most_stored) {
      std::erase_if(same, [&](const entry& e) {
        return e.counts == state_.counts() && e.waits == waits_ &&
               std::equal(times_.begin(), times_.end(), e.times.begin(), [](ticks mine, ticks theirs) { return mine <= theirs; });
      });
      same.push_back({state_.counts(), waits_, times_});
      ++stored_;
    }
    return false;
  }

  struct entry {
    std::vector<std::uint32_t> counts;
    std::vector<std::uint64_t> waits;
    std::vector<ticks> times;
  };
  static constexpr std::size_t most_stored = 4'000'000;

  const tick_table& t_;
  order_outlook outlook_;
  partial_orders state_;
  std::vector<std::uint64_t> waits_;  ///< by device: stages whose forward is not next there
  std::vector<bool> short_of_memory_;
  long long most_;
  std::vector<partial_orders::task> sequence_;
  std::vector<ticks> times_;
  std::unordered_map<std::uint64_t, std::vector<entry>> seen_;
  std::size_t stored_ = 0;
  optimum best_;
};

HETPLAN_INLINE optimum proven_optimum(const tick_table& t, order_goal goal, const found_orders& given, long long most) {
  return optimum_search(t, goal, given, most).run();
}

}  // namespace hetplan::schedule::detail
