// SPDX-License-Identifier: BSL-1.0
// Optimal orders against known optima and a slow search that knows only the rules of a pipeline.

#include <hetplan/schedule/automatic_orders.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/schedule/partial_orders.hpp>

#include "support/random_source.hpp"

namespace test_order_optimum {

using namespace hetplan;
using namespace hetplan::test;
using namespace hetplan::schedule;

namespace {

constexpr int none = std::numeric_limits<int>::max();

/// Enumerates all decisions of all devices, waiting included, whenever a task ends or a tensor arrives, for each microbatch separately.
/// Whole times only. A device starts as early as possible, as orders do.
class all_schedules {
 public:
  all_schedules(const pipeline_times& p, order_goal goal, bool in_turn)
      : p_(p), goal_(goal), in_turn_(in_turn), m_(p.microbatches), end_(3 * p.stages.size() * static_cast<std::size_t>(m_), none),
        free_(p.devices(), 0), began_(p.devices(), none) {}

  [[nodiscard]] int least() {
    choose(0, 0);
    return least_;
  }

 private:
  int& end(std::size_t s, int what, int k) {
    return end_[(3 * s + static_cast<std::size_t>(what)) * static_cast<std::size_t>(m_) + static_cast<std::size_t>(k)];
  }
  [[nodiscard]] int length(std::size_t s, int what) const {
    const phase_times& t = p_.stages[s];
    return static_cast<int>(what == 0 ? t.forward : what == 1 ? t.backward_input : t.backward_weight);
  }
  static bool by(int end, double delay, int now) { return end != none && end + static_cast<int>(delay) <= now; }
  bool ready(std::size_t s, int what, int k, int now) {
    if (what > 0 && !by(end(s, what - 1, k), 0, now)) return false;
    return std::all_of(p_.edges.begin(), p_.edges.end(), [&](const stage_delay& e) {
      return !(what == 0 && e.to == s && !by(end(e.from, 0, k), e.forward, now)) &&
             !(what == 1 && e.from == s && !by(end(e.to, 1, k), e.backward, now));
    });
  }
  bool has_room(std::size_t s, int now) {
    const std::size_t d = p_.stages[s].device;
    double held = p_.stages[s].activation;
    for (std::size_t u = 0; u < p_.stages.size(); ++u) {
      for (int k = 0; p_.stages[u].device == d && k < m_; ++k) {
        if (end(u, 0, k) == none || by(end(u, 2, k), 0, now)) continue;
        held += by(end(u, 1, k), 0, now) ? p_.stages[u].kept_for_weights : p_.stages[u].activation;
      }
    }
    return held <= p_.memory_of(d) + 1e-9;
  }

  /// Enumerates the decisions of device d and later devices.
  void choose(int now, std::size_t d) {
    if (d == free_.size()) return advance(now);
    bool may_wait = true;
    for (std::size_t s = 0; free_[d] <= now && s < p_.stages.size(); ++s) {
      if (p_.stages[s].device != d) continue;
      for (int what = 0; what < 3; ++what) {
        for (int k = 0; k < m_; ++k) {
          if (end(s, what, k) != none || !ready(s, what, k, now) || (what == 0 && !has_room(s, now))) continue;
          if (began_[d] == none && goal_ == order_goal::longest_span) may_wait = false;
          const int free = free_[d], began = began_[d];
          free_[d] = end(s, what, k) = now + length(s, what);
          began_[d] = std::min(began, now);
          choose(now, d + 1);
          end(s, what, k) = none;
          free_[d] = free;
          began_[d] = began;
          if (in_turn_) break;
        }
      }
    }
    if (may_wait) choose(now, d + 1);
  }

  void advance(int now) {
    int next = none;
    const auto later = [&](int e, double delay) {
      if (e != none && e + static_cast<int>(delay) > now) next = std::min(next, e + static_cast<int>(delay));
    };
    for (const int e : end_) later(e, 0);
    for (const stage_delay& e : p_.edges) {
      for (int k = 0; k < m_; ++k) {
        later(end(e.from, 0, k), e.forward);
        later(end(e.to, 1, k), e.backward);
      }
    }
    const bool all = std::find(end_.begin(), end_.end(), none) == end_.end();
    int worst = 0;
    for (std::size_t d = 0; d < free_.size(); ++d) {
      int left = 0;
      for (std::size_t s = 0; s < p_.stages.size(); ++s) {
        for (int what = 0; p_.stages[s].device == d && what < 3; ++what) {
          for (int k = 0; k < m_; ++k) left += end(s, what, k) == none ? length(s, what) : 0;
        }
      }
      const int zero = goal_ == order_goal::makespan ? 0 : std::min(began_[d], now);
      worst = std::max(worst, (left > 0 ? std::max(free_[d], now) : free_[d]) + left - zero);
    }
    if (worst >= least_) return;
    if (all) {
      least_ = worst;
      return;
    }
    if (next == none) return;  // deadlock
    // The past matters only as far as something is still under way.
    std::string key;
    for (const int e : end_) key += static_cast<char>(e == none ? -1 : e > next ? 10 + e - next : std::max(0, longest_delay - (next - e)));
    key += static_cast<char>(next);
    for (const int b : began_) key += static_cast<char>(b == none ? -1 : b);
    if (seen_.insert(std::move(key)).second) choose(next, 0);
  }

 public:
  static constexpr int longest_delay = 2;

 private:
  const pipeline_times& p_;
  order_goal goal_;
  bool in_turn_;
  int m_;
  std::vector<int> end_, free_, began_;
  int least_ = none;
  std::unordered_set<std::string> seen_;
};

pipeline_times drawn(random_source& random, int devices, int microbatches, bool v) {
  const auto time = [&] { return static_cast<double>(random.integer(1, 4)); };
  std::vector<phase_times> s;
  for (int i = 0; i < (v ? 2 : 1) * devices; ++i) {
    s.push_back({.device = static_cast<std::size_t>(v ? std::min(i, 2 * devices - 1 - i) : i),
                 .forward = time(),
                 .backward_input = time(),
                 .backward_weight = time()});
  }
  std::vector<double> memory;
  for (int d = 0; d < devices && devices * microbatches % 5 != 4; ++d)
    memory.push_back((v ? 2 : 1) + random.integer(0, 2 * microbatches) * 0.5);
  return chain_of(std::move(s), random.integer(0, all_schedules::longest_delay), microbatches, std::move(memory));
}

}  // namespace

TEST_CASE("known optima of pipelines are found and proven") {
  struct known {
    std::size_t devices;
    int microbatches;
    double forward, backward_input, backward_weight, delay, least;
  };
  for (const known& k : {known{2, 3, 5, 6, 4, 0, 48}, known{3, 4, 5, 6, 4, 0, 70}, known{4, 4, 5, 6, 4, 0, 81}, known{4, 6, 1, 1, 1, 0, 19},
                         known{4, 8, 5, 6, 4, 0, 125}, known{4, 8, 10, 10, 10, 1, 242}}) {
    const phase_times each{.forward = k.forward, .backward_input = k.backward_input, .backward_weight = k.backward_weight};
    const pipeline_times p = interleaved(each, k.devices, 1, k.delay, k.microbatches);
    const found_by_search found = automatic_orders(p);
    INFO(k.devices << " devices, " << k.microbatches << " microbatches");
    CHECK(found.optimal);
    CHECK(found.value == k.least);
    CHECK(found.bound == k.least);
    CHECK(replay_orders(p, found.orders).longest_span() == k.least);
  }
}

TEST_CASE("branch and bound finds what trying everything finds", "[long]") {
  random_source random(first_seed());
  struct size {
    int devices, microbatches, cases;
    bool v, in_turn;
  };
  for (const size& z :
       {size{2, 2, 100, false, false}, size{2, 3, 20, false, false}, size{3, 2, 10, false, false}, size{2, 4, 15, false, true},
        size{3, 3, 5, false, true}, size{3, 4, 2, false, true}, size{2, 2, 10, true, false}, size{2, 3, 4, true, true}}) {
    for (int i = 0; i < z.cases; ++i) {
      INFO(z.devices << " devices, " << z.microbatches << " microbatches, " << (z.v ? "V" : "chain") << ", case " << i);
      const pipeline_times p = drawn(random, z.devices, z.microbatches, z.v);
      const order_goal goal = random.chance(0.5) ? order_goal::makespan : order_goal::longest_span;
      const int least = all_schedules(p, goal, z.in_turn).least();
      const schedule::detail::tick_table t(p);
      const auto proven = schedule::detail::proven_optimum(t, goal, {}, 1'000'000);
      REQUIRE(proven.proven);
      CHECK(static_cast<double>(proven.orders.value) * t.unit == Approx(least));
      const found_by_search found = automatic_orders(p, {.goal = goal, .steps = 200'000});
      CHECK(found.bound <= least * (1 + 1e-9));
      CHECK(found.value >= least * (1 - 1e-9));
      if (found.optimal) CHECK(found.value == Approx(least));
    }
  }
}

}  // namespace test_order_optimum
