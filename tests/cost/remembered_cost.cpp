// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/dora.hpp>

using namespace hetplan;

namespace test_remembered_cost {

struct counts {
  std::atomic<int> asked = 0, inside = 0, most_inside = 0;
};

/// Times that differ by device and layer; counts the questions, and how many run at once.
struct counting {
  std::shared_ptr<counts> seen = std::make_shared<counts>();

  [[nodiscard]] seconds time(const work& w, const device& d) const {
    const int now = ++seen->inside;
    for (int most = seen->most_inside; now > most && !seen->most_inside.compare_exchange_weak(most, now);) continue;
    ++seen->asked;
    const double t = (1 + w.layer.id.value) * w.batch * (w.phase == phase::forward ? 1e-3 : 1.7e-3) / (3 + d.id.value);
    --seen->inside;
    return seconds(t);
  }
};
static_assert(check_cost_model<counting>());

planning_graph layers(int n) {
  planning_graph_builder b("m");
  for (int l = 0; l < n; ++l) b.add_layer({.name = "l" + std::to_string(l), .forward_flops = 1_GFLOP, .weight = 1_MB});
  for (int l = 1; l < n; ++l) b.add_edge(layer_id(l - 1), layer_id(l), 1_kB);
  return std::move(b).build();
}
cluster devices(int n) {
  std::vector<device> all;
  for (int d = 0; d < n; ++d) all.push_back({.name = "d" + std::to_string(d), .memory = 4_GB, .compute = 1_TFLOP_per_s});
  return {"c", std::move(all), shared_medium{1_Gbit_per_s, 1_ms}};
}

TEST_CASE("a remembered total is, bit for bit, what the model itself answers layer by layer, and each layer is asked for once") {
  const unsigned seed = 11;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const planning_graph m = layers(40);
  const cluster c = devices(3);
  const counting mine;
  const any_cost_model direct(mine), remembered(remembered_cost(mine, m, c));
  std::set<std::array<int, 4>> questions;
  mine.seen->asked = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const int first = static_cast<int>(random() % 40), last = first + 1 + static_cast<int>(random() % static_cast<unsigned>(40 - first));
    const device& d = c.devices()[random() % 3];
    const work_kind k{.phase = random() % 2 == 0 ? phase::forward : phase::backward_input, .batch = static_cast<double>(1 + random() % 4)};
    std::vector<layer_id> part;
    for (int l = first; l < last; ++l) {
      part.emplace_back(l);
      questions.insert({l, d.id.value, static_cast<int>(k.phase), static_cast<int>(k.batch)});
    }
    const int before = mine.seen->asked;
    const double known = remembered.total_s(m, part, k, d, 0.25);
    const int asked = mine.seen->asked - before;
    REQUIRE(known == direct.total_s(m, part, k, d, 0.25));
    mine.seen->asked = before + asked;  // excludes questions of `direct`
  }
  CHECK(mine.seen->asked == static_cast<int>(questions.size()));
}

TEST_CASE("other graphs and clusters than its own are asked about, not remembered") {
  const planning_graph m = layers(4), other = layers(4);
  const cluster c = devices(2), elsewhere = devices(2);
  const counting mine;
  const any_cost_model cost(remembered_cost(mine, m, c));
  const std::vector<layer_id> all{layer_id(0), layer_id(1), layer_id(2), layer_id(3)};
  const auto asked = [&](const planning_graph& g, const device& d) {
    const int before = mine.seen->asked;
    static_cast<void>(cost.total_s(g, all, {}, d));
    return mine.seen->asked - before;
  };
  CHECK(asked(m, c[device_id(0)]) == 4);
  CHECK(asked(m, c[device_id(0)]) == 0);
  CHECK(asked(m, c[device_id(1)]) == 4);
  for (int again = 0; again < 2; ++again) {
    CHECK(asked(other, c[device_id(0)]) == 4);
    CHECK(asked(m, elsewhere[device_id(0)]) == 4);
  }
}

TEST_CASE("a model that answers nonsense is refused with its layer, and asked again the next time") {
  struct wrong {
    [[nodiscard]] seconds time(const work& w, const device&) const { return seconds(w.layer.id.value == 2 ? -1 : 1); }
  };
  const planning_graph m = layers(4);
  const cluster c = devices(1);
  const any_cost_model cost(remembered_cost(any_cost_model(wrong{}), m, c));
  const std::vector<layer_id> all{layer_id(0), layer_id(1), layer_id(2)};
  for (int again = 0; again < 2; ++again) {
    CHECK_THROWS_WITH(cost.total_s(m, all, {}, c[device_id(0)]), Catch::Contains("layer 2 \"l2\"") && Catch::Contains("-1 s"));
  }
}

TEST_CASE("at its limit it forgets all, and asks again") {
  const planning_graph m = layers(4);
  const cluster c = devices(3);
  const counting mine;
  const any_cost_model cost(remembered_cost(mine, m, c, 2 * m.size()));  // room for two devices
  const std::vector<layer_id> all{layer_id(0), layer_id(1), layer_id(2), layer_id(3)};
  const auto asked = [&](int d) {
    const int before = mine.seen->asked;
    static_cast<void>(cost.total_s(m, all, {}, c[device_id(d)]));
    return mine.seen->asked - before;
  };
  CHECK(asked(0) == 4);
  CHECK(asked(1) == 4);
  CHECK(asked(0) + asked(1) == 0);
  CHECK(asked(2) == 4);  // no room for a third: the others are forgotten
  CHECK(asked(2) == 0);
  CHECK(asked(0) == 4);
}

TEST_CASE("a problem's cost model is never asked from two threads at once") {
  const planning_graph m = layers(60);
  const cluster c = devices(4);
  const counting mine;
  const planning_problem problem{m, c, mine, job{.batch = 8}};
  std::vector<std::jthread> crew;
  for (int i = 0; i < 4; ++i) {
    crew.emplace_back([&, i] {
      for (int b = 1; b <= 200; ++b) {
        const stage s{.name = "s", .layers = {layer_id((b + i) % 60), layer_id((b + 2 * i) % 60)}, .devices = {{device_id(i), b}}};
        static_cast<void>(stage_time_s(problem.cost, m, s, s.devices[0], c[device_id(i)], phase::forward, token_pass{}));
      }
    });
  }
  crew.clear();
  CHECK(mine.seen->most_inside == 1);
  CHECK(mine.seen->asked > 0);
}

TEST_CASE("memory and energy models are never asked from two threads at once") {
  struct inside {
    std::atomic<int> now = 0, most = 0;
    void visit() {
      const int n = ++now;
      if (n > most) most = n;
      std::this_thread::yield();
      --now;
    }
  };
  struct shared_memory_model {
    std::shared_ptr<inside> seen = std::make_shared<inside>();
    [[nodiscard]] bytes state(const layer& l, const workload& w) const { return seen->visit(), plain_memory{}.state(l, w); }
    [[nodiscard]] bytes activations(const layer& l, const workload& w) const { return seen->visit(), plain_memory{}.activations(l, w); }
    [[nodiscard]] bytes cache(const layer& l, const workload& w) const { return seen->visit(), plain_memory{}.cache(l, w); }
  };
  struct shared_energy_model {
    std::shared_ptr<inside> seen = std::make_shared<inside>();
    [[nodiscard]] joules energy(const device_usage& u, const device& d) const { return seen->visit(), linear_power{}.energy(u, d); }
  };
  const planning_graph m = layers(60);
  const cluster c = devices(4);
  const shared_memory_model memory;
  const shared_energy_model energy;
  const planning_problem problem{m, c, roofline{}, job{.batch = 8}, {.memory = memory, .energy = energy}};
  std::vector<std::jthread> crew;
  for (int i = 0; i < 4; ++i) {
    crew.emplace_back([&, i] {
      const std::vector<layer_id> two{layer_id(i), layer_id(i + 1)};
      for (int n = 0; n < 200; ++n) {
        static_cast<void>(problem.models.memory.total_state(m, two, {}, 1));
        static_cast<void>(problem.models.memory.total_activations(m, two, {}));
        static_cast<void>(problem.models.memory.cache(m[two[0]], {}));
        static_cast<void>(problem.models.energy.energy({}, c[device_id(i)]));
      }
    });
  }
  crew.clear();
  CHECK(memory.seen->most == 1);
  CHECK(energy.seen->most == 1);
}

TEST_CASE("planning with a problem asks no more than the model has answers, and copies share them") {
  const planning_graph m = layers(6);
  const cluster c = devices(2);
  const counting mine;
  planning_problem problem{m, c, mine, job{.batch = 4}};
  const plan_result first = recipes::dora(problem, minimize_latency{}, 1);
  REQUIRE(first.status.ok());
  const plan best = first.plans.front().plan;
  const auto judged_twice = [&](const planning_problem& q) {
    const int before = mine.seen->asked;
    static_cast<void>(judge(best, q.model, q.cluster, q.cost, q.models));
    return mine.seen->asked - before;
  };
  CHECK(judged_twice(problem) == 0);
  const planning_problem copy = problem;
  CHECK(judged_twice(copy) == 0);
  problem.cost = mine;  // a new model, with nothing remembered
  CHECK(judged_twice(problem) > 0);
}

TEST_CASE("a memory model behind its door answers as itself, one layer or many") {
  const planning_graph m = layers(5);
  const workload w;
  const framework_memory mine{.fragmentation = 0.1};
  const any_memory_model any(mine);
  std::vector<layer_id> all;
  double state = 0, kept = 0, for_weights = 0;
  for (const layer& l : m.layers()) {
    all.push_back(l.id);
    CHECK(any.state(l, w) == mine.state(l, w));
    CHECK(any.optimizer_state(l, w) == mine.optimizer_state(l, w));
    state += checked_state(mine, l, w, 2);
    kept += mine.activations(l, w).value();
    for_weights += mine.activations_for_weights(l, w).value();
  }
  CHECK(any.total_state(m, all, w, 2) == state);
  CHECK(any.total_activations(m, all, w).all == kept);
  CHECK(any.total_activations(m, all, w).for_weights == for_weights);

  struct undivided {
    [[nodiscard]] bytes state(const layer&, const workload&) const { return 100_B; }
    [[nodiscard]] bytes activations(const layer&, const workload&) const { return 10_B; }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return 1_B; }
  };
  const any_memory_model whole(undivided{});
  CHECK(whole.total_state(m, all, w, 1) == 500);
  CHECK(whole.activations_for_weights(m.layers()[0], w) == 10_B);
  CHECK_THROWS_WITH(whole.total_state(m, all, w, 2), Catch::Contains("does not tell the optimizer's part of the state"));
}

}  // namespace test_remembered_cost
