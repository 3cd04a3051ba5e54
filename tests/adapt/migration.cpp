// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/simulator.hpp>

#include "adapt/support.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using namespace adapt_tests;

namespace {

/// A switch between two random plans of one model. Devices that the second plan does not use may be gone.
struct random_switch {
  planning_graph model;
  hetplan::cluster cluster;
  plan before, after;
  adapt::holdings held;
  adapt::conditions now;
};

random_switch make_switch(std::uint64_t seed) {
  test::random_source random(seed * 31 + 5);
  const auto kind = random.pick(std::vector{test::plan_kind::chain, test::plan_kind::tied, test::plan_kind::frozen, test::plan_kind::dag,
                                            test::plan_kind::inference, test::plan_kind::generation});
  const test::instance i = test::random_instance(seed, kind);
  planning_graph model = i.model();
  hetplan::cluster c = i.cluster();
  adapt::conditions now = adapt::nominal(c);
  const int size = random.integer(1, 5), count = random.integer(1, 4);
  plan before = random_chain_plan(random, model, c, all_devices(c), i.plan.workload, size, count);
  std::vector<device_id> there;
  for (const device& d : c.devices()) {
    if (random.chance(0.75)) there.push_back(d.id);
    now.present[d.id.index()] = static_cast<char>(!there.empty() && there.back() == d.id);
  }
  if (there.empty()) {
    there.emplace_back(0);
    now.present[0] = 1;
  }
  for (bytes_per_second& x : now.capacity) x *= random.chance(0.3) ? random.between(0.1, 1) : 1.0;
  // The second plan has the same sequences in other microbatches.
  const int other = random.chance(0.5) ? size * count : size;
  plan after = random_chain_plan(random, model, c, there, i.plan.workload, other, size * count / other);
  adapt::holdings held = adapt::holdings_of(before, model, c.size());
  if (random.chance(0.5)) {
    const plan other_plan = random_chain_plan(random, model, c, all_devices(c), i.plan.workload, size, count);
    const adapt::holdings copies = adapt::holdings_of(other_plan, model, c.size());
    for (const layer& l : model.layers()) {
      for (const device_id d : copies.holders(l.id)) held.add(d, l.id);
    }
  }
  return {std::move(model), std::move(c), std::move(before), std::move(after), std::move(held), std::move(now)};
}

template <class F>
void for_random_switches(int count, F&& f) {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + static_cast<std::uint64_t>(count); ++seed) {
    INFO("make_switch(" << seed << ")");
    f(make_switch(seed));
  }
}

using tensor_name = std::pair<int, int>;  // weight group, or -1 and the layer
tensor_name name_of(const layer& l) { return l.weight_group < 0 ? tensor_name{-1, l.id.value} : tensor_name{l.weight_group, -1}; }

/// Returns the nonempty tensors that a plan needs on each device, counted without `holdings`.
std::map<int, std::map<tensor_name, double>> needs_of(const plan& p, const planning_graph& model) {
  std::map<int, std::map<tensor_name, double>> needs;
  for (const stage& s : p.stages) {
    for (const assignment& a : s.devices) {
      for (const layer_id id : s.layers) {
        const layer& l = model[id];
        const bool learns = p.workload.mode == mode::training && l.trainable;
        const double size = l.weight.value() + (learns ? p.workload.optimizer_factor * l.weight.value() : 0);
        if (size > 0) needs[a.device.value][name_of(l)] = size;
      }
    }
  }
  return needs;
}

double cache_bytes_moved(const random_switch& s) {
  if (s.after.workload.mode != mode::generation) return 0;
  double total = 0;
  const auto owner = [&](const plan& p, layer_id l, long long sequence) {
    for (const stage& st : p.stages) {
      if (std::find(st.layers.begin(), st.layers.end(), l) == st.layers.end()) continue;
      long long at = sequence % p.microbatch_size;
      for (const assignment& a : st.devices) {
        if (at < a.samples) return a.device;
        at -= a.samples;
      }
    }
    return device_id();
  };
  for (const layer& l : s.model.layers()) {
    for (long long q = 0; q < s.after.batch(); ++q) {
      const device_id from = owner(s.before, l.id, q), to = owner(s.after, l.id, q);
      if (from != to && s.now.present[from.index()] != 0) total += l.kv_bytes_per_token.value() * s.after.workload.length(l);
    }
  }
  return total;
}

/// Returns the largest sum of bytes x weight / capacity over the resources of a round.
double load_s(const std::vector<adapt::fetch>& round, const cluster& c, const adapt::conditions& now) {
  std::vector<double> load(now.capacity.size(), 0);
  for (const adapt::fetch& f : round) {
    for (const resource_use& u : c.network().find(f.from, f.to)->via) {
      load[u.resource.index()] += f.volume.value() * u.weight / now.capacity[u.resource.index()].value();
    }
  }
  return load.empty() ? 0 : *std::max_element(load.begin(), load.end());
}

cluster four(auto net) {
  std::vector<device> all;
  for (const char* name : {"a", "b", "c", "d"}) {
    all.push_back(
        {.name = name, .memory = 1_GB, .compute = 1_TFLOP_per_s, .power = {2_W, 10_W, joules_per_byte(1e-8), joules_per_byte(3e-8)}});
  }
  return {"four", all, net};
}

/// A chain with layers of 1, 2, 3, ... MB.
planning_graph growing(int layers) {
  planning_graph_builder b("growing");
  for (int i = 0; i < layers; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 1_GFLOP, .weight = (i + 1) * 1_MB, .kv_bytes_per_token = 10_B});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 1_kB);
  }
  return std::move(b).build();
}

plan stages_of(const std::vector<std::vector<int>>& layers, const std::vector<std::vector<std::pair<int, int>>>& devices, workload w = {}) {
  plan p{.workload = w, .microbatch_size = 0, .microbatches = 2};
  for (std::size_t s = 0; s < layers.size(); ++s) {
    stage st{.name = "s" + std::to_string(s)};
    for (const int l : layers[s]) st.layers.emplace_back(l);
    int size = 0;
    for (const auto& [d, share] : devices[s]) {
      st.devices.push_back({device_id(d), share});
      size += share;
    }
    p.microbatch_size = size;
    p.stages.push_back(st);
  }
  return p;
}

}  // namespace

TEST_CASE("after a delta migration every device holds exactly what it lacked, once, from a device that had it") {
  int feasible = 0, infeasible = 0, empty = 0;
  for_random_switches(600, [&](const random_switch& s) {
    const adapt::migration m = adapt::delta_migration(s.held, s.after, s.model, s.cluster, s.now);
    const auto needs = needs_of(s.after, s.model);
    bool possible = true;
    double expected = 0;
    for (const auto& [d, tensors] : needs) {
      for (const auto& [name, size] : tensors) {
        bool mine = false, somebody = false;
        for (const layer& l : s.model.layers()) {
          if (name_of(l) != name) continue;
          for (const device& h : s.cluster.devices()) {
            if (!s.held.has(h.id, l.id)) continue;
            mine = mine || h.id.value == d;
            somebody = somebody || s.now.present[h.id.index()] != 0;
          }
        }
        if (!mine) expected += size;
        possible = possible && (mine || somebody);
      }
    }
    REQUIRE(m.status.ok() == possible);
    if (!possible) {
      ++infeasible;
      CHECK(m.rounds.empty());
      CHECK(m.status.reason.find("held") != std::string::npos);
      return;
    }
    REQUIRE(m.rounds.size() <= 1);
    const double caches = cache_bytes_moved(s);
    CHECK(m.volume().value() == Approx(expected + caches));
    if (m.empty()) {
      ++empty;
      return;
    }
    ++feasible;
    adapt::holdings got = s.held;
    double weights = 0;
    std::set<std::pair<int, tensor_name>> once;
    for (const adapt::fetch& f : m.rounds.front()) {
      REQUIRE(f.from != f.to);
      REQUIRE(s.now.present[f.from.index()] != 0);
      const bool cache = s.after.workload.mode == mode::generation && !f.immutable;
      if (cache) continue;
      double sum = 0;
      for (const layer_id l : f.layers) {
        REQUIRE(s.held.has(f.from, l));
        REQUIRE_FALSE(s.held.has(f.to, l));
        REQUIRE(once.insert({f.to.value, name_of(s.model[l])}).second);
        REQUIRE(f.immutable == (s.after.workload.mode != mode::training || !s.model[l].trainable));
        sum += needs.at(f.to.value).at(name_of(s.model[l]));
        got.add(f.to, l);
      }
      REQUIRE(f.volume.value() == Approx(sum));
      weights += sum;
    }
    CHECK(weights == Approx(expected));
    for (const stage& st : s.after.stages) {
      for (const assignment& a : st.devices) {
        for (const layer_id l : st.layers) REQUIRE((got.has(a.device, l) || s.model[l].weight.value() == 0));
      }
    }
  });
  CHECK(feasible > 150);
  CHECK(infeasible > 50);
  CHECK(empty > 5);
}

TEST_CASE("a switch to the plan that runs moves nothing, and what follows a switch is the plan's own holdings") {
  for_random_switches(100, [](const random_switch& s) {
    const adapt::conditions all = adapt::nominal(s.cluster);
    const adapt::holdings held = adapt::holdings_of(s.before, s.model, s.cluster.size());
    CHECK(adapt::delta_migration(held, s.before, s.model, s.cluster, all) == adapt::migration{});
  });
}

TEST_CASE("optimizer state that devices share out moves by the part, from whoever has it") {
  // One layer of 1 MB; Adam adds 2 MB of state.
  const planning_graph model = growing(1);
  const cluster c = four(mesh{10_MB_per_s});
  const auto now = adapt::nominal(c);
  const auto on = [](const std::vector<std::pair<int, int>>& devices, bool shared) {
    plan p = stages_of({{0}}, {devices});
    p.stages[0].shard = shared ? sharding::state : sharding::none;
    return p;
  };
  const auto moved = [&](const plan& from, const plan& to) {
    const adapt::migration m = adapt::delta_migration(adapt::holdings_of(from, model, 4), to, model, c, now);
    REQUIRE(m.status.ok());
    std::map<std::pair<int, int>, double> bytes_by_pair;
    for (const auto& round : m.rounds) {
      for (const adapt::fetch& f : round) bytes_by_pair[{f.from.value, f.to.value}] += f.volume.value();
    }
    return bytes_by_pair;
  };
  using moves = std::map<std::pair<int, int>, double>;
  const plan both = on({{0, 1}, {1, 1}}, false), halves = on({{0, 1}, {1, 1}}, true), turned = on({{1, 1}, {0, 1}}, true);
  CHECK(moved(both, halves).empty());
  CHECK(moved(halves, both) == moves{{{0, 1}, 1e6}, {{1, 0}, 1e6}});
  CHECK(moved(halves, turned) == moves{{{0, 1}, 1e6}, {{1, 0}, 1e6}});
  // A third device gets the weights from either holder and half of the state from each.
  const moves to_third = moved(halves, on({{2, 2}}, false));
  CHECK(to_third.at({0, 2}) + to_third.at({1, 2}) == Approx(3e6));
  CHECK(std::min(to_third.at({0, 2}), to_third.at({1, 2})) == Approx(1e6));
  // Two new devices get the weights and their own half of the state from the only holder.
  CHECK(moved(on({{0, 2}}, false), on({{2, 1}, {3, 1}}, true)) == moves{{{0, 2}, 2e6}, {{0, 3}, 2e6}});
  plan served = on({{0, 1}, {1, 1}}, false);
  served.workload.mode = mode::inference;
  plan elsewhere = on({{2, 2}}, false);
  elsewhere.workload.mode = mode::inference;
  double all = 0;
  for (const auto& [ends, volume] : moved(served, elsewhere)) all += volume;
  CHECK(all == Approx(1e6));
  // The coordinator gathers what it lacks, then sends what the others need.
  const adapt::migration heavy =
      adapt::through_coordinator(adapt::holdings_of(halves, model, 4), on({{2, 1}, {3, 1}}, true), device_id(0), model, c, now);
  REQUIRE(heavy.rounds.size() == 2);
  CHECK(heavy.volume().value() == Approx(1e6 + 2 * 2e6));
  // A device that leaves takes its part of the state along.
  auto gone = now;
  gone.present[1] = 0;
  const adapt::migration lost = adapt::delta_migration(adapt::holdings_of(halves, model, 4), on({{0, 2}}, false), model, c, gone);
  CHECK(lost.status.result == outcome::infeasible);
  CHECK(lost.status.proof.has_value());
  CHECK(lost.status.reason.find("b held it") != std::string::npos);
}

TEST_CASE("heavy rescheduling gathers all that the coordinator lacks and hands out all that the others run") {
  int compared = 0;
  for_random_switches(400, [&](const random_switch& s) {
    const device_id coordinator = adapt::elect_coordinator(s.cluster, s.now);
    const adapt::migration m = adapt::through_coordinator(s.held, s.after, coordinator, s.model, s.cluster, s.now);
    const adapt::migration delta = adapt::delta_migration(s.held, s.after, s.model, s.cluster, s.now);
    if (!m.status.ok()) return;
    ++compared;
    REQUIRE(delta.status.ok());  // what the coordinator can gather, a delta migration can, too
    double expected = cache_bytes_moved(s);
    plan whole = s.after;
    whole.stages = {{.name = "all", .layers = {}, .devices = {{coordinator, whole.microbatch_size}}}};
    for (const layer& l : s.model.layers()) whole.stages[0].layers.push_back(l.id);
    const auto gathered = needs_of(whole, s.model);
    for (const auto& [name, size] : gathered.empty() ? std::map<tensor_name, double>{} : gathered.begin()->second) {
      bool mine = false;
      for (const layer& l : s.model.layers()) mine = mine || (name_of(l) == name && s.held.has(coordinator, l.id));
      if (!mine) expected += size;
    }
    for (const auto& [d, tensors] : needs_of(s.after, s.model)) {
      for (const auto& [name, size] : tensors) expected += d == coordinator.value ? 0 : size;
    }
    CHECK(m.volume().value() == Approx(expected));
    CHECK(m.volume().value() >= delta.volume().value() * (1 - 1e-12));
    CHECK(m.rounds.size() <= 2);
    for (const auto& f : m.rounds.empty() ? std::vector<adapt::fetch>{} : m.rounds.back()) {
      if (m.rounds.size() == 2 && (f.immutable || s.after.workload.mode == mode::training)) CHECK(f.from == coordinator);
    }
  });
  CHECK(compared > 100);
}

TEST_CASE("the senders that are chosen load the network little more than the best choice of all") {
  // Brute force over all senders of all tensors; the makespan is the load of the busiest resource.
  int trials = 0, best = 0;
  double worst = 1;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 400; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    const planning_graph model = [&] {
      planning_graph_builder b("m");
      const int layers = random.integer(2, 6);
      for (int i = 0; i < layers; ++i) {
        b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 1_GFLOP, .weight = bytes(random.between(1e5, 5e6))});
        if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 1_kB);
      }
      return std::move(b).build();
    }();
    std::vector<device> devices;
    for (int d = 0; d < 4; ++d) devices.push_back({.name = "d" + std::to_string(d), .memory = 1_GB, .compute = 1_TFLOP_per_s});
    const bytes_per_second rate(1e7);
    const cluster c = seed % 3 == 0   ? cluster("star", devices, star{rate})
                      : seed % 3 == 1 ? cluster("ring", devices, ring{rate})
                                      : cluster("half", devices, star{rate, {}, duplex::half});
    adapt::conditions now = adapt::nominal(c);
    for (bytes_per_second& x : now.capacity) x *= random.between(0.2, 1);
    adapt::holdings held(model, 4);
    for (const layer& l : model.layers()) {
      held.add(device_id(random.integer(0, 3)), l.id);
      held.add(device_id(random.integer(0, 3)), l.id);
    }
    plan p = random_chain_plan(random, model, c, all_devices(c), {}, 2, 1);
    const adapt::migration m = adapt::delta_migration(held, p, model, c, now);
    REQUIRE(m.status.ok());
    if (m.empty()) continue;
    struct want {
      device_id to;
      double volume;
      std::vector<device_id> from;
    };
    std::vector<want> wants;
    const adapt::holdings needed = adapt::holdings_of(p, model, 4);
    for (const layer& l : model.layers()) {
      for (const device_id to : needed.holders(l.id)) {
        if (!held.has(to, l.id)) wants.push_back({to, 3 * l.weight.value(), held.holders(l.id)});
      }
    }
    double least = 1e300, most = 0;
    std::vector<adapt::fetch> round(wants.size());
    const auto choose = [&](const auto& self, std::size_t i) -> void {
      if (i == wants.size()) {
        const double all = load_s(round, c, now);
        least = std::min(least, all);
        most = std::max(most, all);
        return;
      }
      for (const device_id from : wants[i].from) {
        round[i] = {from, wants[i].to, bytes(wants[i].volume)};
        self(self, i + 1);
      }
    };
    choose(choose, 0);
    const double mine = load_s(m.rounds.front(), c, now);
    ++trials;
    best += mine <= least * (1 + 1e-9);
    worst = std::max(worst, mine / least);
    CHECK(mine >= least * (1 - 1e-9));
    CHECK(mine <= most * (1 + 1e-9));
    CHECK(mine <= 1.5 * least);
    const bool forced = std::all_of(wants.begin(), wants.end(), [](const want& w) { return w.from.size() == 1; });
    if (forced) CHECK(mine == Approx(least));
  }
  INFO("best in " << best << " of " << trials << ", worst " << worst);
  CHECK(trials > 250);
  CHECK(best > trials * 9 / 10);
}

TEST_CASE("a weak link is avoided, a dead one never used, and who cannot be helped is told why") {
  const planning_graph model = growing(2);
  const cluster c = four(star{1_MB_per_s});
  const plan before = stages_of({{0, 1}}, {{{0, 1}, {1, 1}}}), after = stages_of({{0, 1}}, {{{2, 2}}});
  const adapt::holdings held = adapt::holdings_of(before, model, 4);
  adapt::conditions now = adapt::nominal(c);
  const auto from = [&](std::size_t i) { return adapt::delta_migration(held, after, model, c, now).rounds.at(0).at(i).from; };
  now.capacity[0] = bytes_per_second(1e4);  // uplink of a
  CHECK(from(0) == device_id(1));
  now.capacity[2] = bytes_per_second(0);  // uplink of b
  CHECK(from(0) == device_id(0));
  now.capacity[0] = bytes_per_second(0);
  CHECK(adapt::delta_migration(held, after, model, c, now).status.reason == "layer 0 \"l0\" for c: no way from a, b");
  now = adapt::nominal(c);
  now.present[0] = now.present[1] = 0;
  CHECK(adapt::delta_migration(held, after, model, c, now).status.reason ==
        "layer 0 \"l0\" for c: no device that is there holds it; a, b held it");
  CHECK(adapt::through_coordinator(held, after, device_id(2), model, c, now).status.result == outcome::infeasible);
  CHECK(adapt::delta_migration(adapt::holdings(model, 4), after, model, c, now).status.reason ==
        "layer 0 \"l0\" for c: no device holds it");
  now.present[2] = 0;
  CHECK_THROWS_WITH(adapt::delta_migration(held, after, model, c, now), Catch::Contains("uses \"c\", which is gone"));
  CHECK_THROWS_AS(adapt::through_coordinator(held, before, device_id(0), model, c, now), invalid_input);
  CHECK_THROWS_AS(adapt::delta_migration(adapt::holdings(model, 3), after, model, c, adapt::nominal(c)), invalid_input);
}

TEST_CASE("on one medium a migration takes its bytes over the capacity, whoever sends") {
  const cluster c = four(shared_medium{10_MB_per_s, 3_ms});
  const planning_graph model = growing(4);
  const plan before = stages_of({{0, 1}, {2, 3}}, {{{0, 2}}, {{1, 2}}}),
             after = stages_of({{0}, {1, 2}, {3}}, {{{0, 2}}, {{2, 2}}, {{3, 2}}});
  const adapt::migration m = adapt::delta_migration(adapt::holdings_of(before, model, 4), after, model, c, adapt::nominal(c));
  REQUIRE(m.rounds.size() == 1);
  CHECK(m.rounds[0].size() == 3);                // a -> c, b -> c, b -> d
  const double moved = 3.0 * (2 + 3 + 4) * 1e6;  // Adam: three times the weights
  CHECK(m.volume().value() == Approx(moved));
  const adapt::migration_run run = adapt::run_migration(m, c, adapt::nominal(c));
  CHECK(run.time.value() == Approx(0.003 + moved / 10e6));
  CHECK(run.sent[0].value() == Approx(6e6));
  CHECK(run.received[2].value() == Approx(15e6));
  CHECK(run.carried[0].value() == Approx(moved));
  for (int d = 0; d < 4; ++d) {
    const auto i = static_cast<std::size_t>(d);
    CHECK(run.energy[i].value() == Approx(2 * run.time.value() + 1e-8 * run.sent[i].value() + 3e-8 * run.received[i].value()));
  }
  adapt::conditions slow = adapt::nominal(c);
  slow.capacity[0] = 5_MB_per_s;
  CHECK(adapt::run_migration(m, c, slow).time.value() == Approx(0.003 + moved / 5e6));
  simulator_options faster = adapt::from_the_start(slow, c);  // full speed after a second
  faster.capacities.push_back({1_s, resource_id(0), 10_MB_per_s});
  CHECK(adapt::run_migration(m, c, faster).time.value() == Approx(1 + (moved - 5e6 * (1 - 0.003)) / 10e6));
  // Two rounds through a: 7 MB arrive from b, then 5 MB go to c and 4 MB to d.
  const adapt::migration heavy =
      adapt::through_coordinator(adapt::holdings_of(before, model, 4), after, device_id(0), model, c, adapt::nominal(c));
  CHECK(adapt::run_migration(heavy, c, adapt::nominal(c)).time.value() == Approx(2 * 0.003 + 3.0 * (7 + 9) * 1e6 / 10e6));
}

TEST_CASE("on a star the busiest port decides, and its load is spread over the holders") {
  const cluster c = four(star{10_MB_per_s});
  const planning_graph model = growing(4);
  // a and b hold the model, c and d need it: 30 MB on each downlink, 60 MB over the two uplinks.
  const plan before = stages_of({{0, 1, 2, 3}}, {{{0, 1}, {1, 1}}}), after = stages_of({{0, 1, 2, 3}}, {{{2, 1}, {3, 1}}});
  const adapt::migration m = adapt::delta_migration(adapt::holdings_of(before, model, 4), after, model, c, adapt::nominal(c));
  const adapt::migration_run run = adapt::run_migration(m, c, adapt::nominal(c));
  CHECK(run.sent[0].value() == Approx(30e6));
  CHECK(run.sent[1].value() == Approx(30e6));
  CHECK(run.time.value() == Approx(3));
}

TEST_CASE("no migration is faster than its busiest resource, and all its bytes arrive") {
  int runs = 0;
  for_random_switches(300, [&](const random_switch& s) {
    const device_id coordinator = adapt::elect_coordinator(s.cluster, s.now);
    for (const adapt::migration& m : {adapt::delta_migration(s.held, s.after, s.model, s.cluster, s.now),
                                      adapt::through_coordinator(s.held, s.after, coordinator, s.model, s.cluster, s.now)}) {
      if (!m.status.ok() || m.empty()) continue;
      ++runs;
      const adapt::migration_run run = adapt::run_migration(m, s.cluster, s.now);
      double least = 0;
      for (const auto& round : m.rounds) least += load_s(round, s.cluster, s.now);
      CHECK(run.time.value() >= least * (1 - 1e-9));
      CHECK(run.moved == m.volume());
      std::vector<double> sent(s.cluster.size(), 0), received(sent);
      std::vector<char> part(s.cluster.size(), 0);
      for (const auto& round : m.rounds) {
        for (const adapt::fetch& f : round) {
          sent[f.from.index()] += f.volume.value();
          received[f.to.index()] += f.volume.value();
          part[f.from.index()] = part[f.to.index()] = 1;
        }
      }
      for (const device& d : s.cluster.devices()) {
        const std::size_t i = d.id.index();
        CHECK(run.sent[i].value() == Approx(sent[i]));
        CHECK(run.received[i].value() == Approx(received[i]));
        const double moved = d.power.send.value() * sent[i] + d.power.receive.value() * received[i];
        CHECK(run.energy[i].value() == Approx(part[i] == 0 ? 0 : d.power.idle.value() * run.time.value() + moved));
      }
    }
  });
  CHECK(runs > 200);
}

TEST_CASE("in generation the caches of the sequences that change device move, and lost ones are counted") {
  const planning_graph model = growing(2);
  const cluster c = four(star{1_MB_per_s});
  const workload talk{.mode = mode::generation, .context = 84};  // and 16 new tokens
  // Microbatches of four: first a has 0, 1, 2 and b has 3, then a has 0 and b 1, 2, 3. Two microbatches, two layers, 10 B per token.
  const plan before = stages_of({{0, 1}}, {{{0, 3}, {1, 1}}}, talk), after = stages_of({{0, 1}}, {{{0, 1}, {1, 3}}}, talk);
  const adapt::holdings held = adapt::holdings_of(before, model, 4);
  adapt::conditions now = adapt::nominal(c);
  const adapt::migration m = adapt::delta_migration(held, after, model, c, now);
  REQUIRE(m.rounds.size() == 1);
  REQUIRE(m.rounds[0].size() == 1);
  CHECK(m.rounds[0][0] == adapt::fetch{device_id(0), device_id(1), bytes(2 * 2 * 2 * 100 * 10), false, {layer_id(0), layer_id(1)}});
  CHECK(m.lost_cache.value() == 0);
  const auto [background, stopped] = adapt::split_immutable(m);
  CHECK(background.empty());
  CHECK(stopped == m);
  now.present[0] = 0;  // a's six sequences are lost with it
  const plan alone = stages_of({{0, 1}}, {{{1, 4}}}, talk);
  const adapt::migration after_loss = adapt::delta_migration(held, alone, model, c, now);
  CHECK(after_loss.status.ok());
  CHECK(after_loss.empty());
  CHECK(after_loss.lost_cache.value() == Approx(6 * 2 * 100 * 10));
}

TEST_CASE("what may come in the background and what has to wait are all of a migration") {
  int both = 0;
  for_random_switches(300, [&](const random_switch& s) {
    const adapt::migration m = adapt::delta_migration(s.held, s.after, s.model, s.cluster, s.now);
    if (!m.status.ok()) return;
    const auto [background, stopped] = adapt::split_immutable(m);
    CHECK(background.volume().value() + stopped.volume().value() == Approx(m.volume().value()));
    for (const auto& round : background.rounds) {
      for (const adapt::fetch& f : round) {
        REQUIRE(f.immutable);
        for (const layer_id l : f.layers) REQUIRE((s.after.workload.mode != mode::training || !s.model[l].trainable));
      }
    }
    for (const auto& round : stopped.rounds) {
      for (const adapt::fetch& f : round) REQUIRE_FALSE(f.immutable);
    }
    if (s.after.workload.mode == mode::inference) CHECK(stopped.empty());
    both += !background.empty() && !stopped.empty();
  });
  CHECK(both > 10);
}

TEST_CASE("work that waits for a migration starts when its last round is done") {
  const cluster c = four(shared_medium{1_MB_per_s, 10_ms});
  adapt::migration m;
  m.rounds = {{{device_id(0), device_id(1), 1_MB}}, {{device_id(1), device_id(2), 2_MB}, {device_id(0), device_id(3), 1_MB}}};
  tasks::task_graph_builder b(c.size());
  const auto done = adapt::add_migration(b, m, c);
  const auto task = b.add(tasks::compute_task{.device = device_id(2), .duration_s = 0.5});
  b.append_to_order(task);
  REQUIRE(done);
  b.depend(*done, task);
  const trace t = simulate(std::move(b).build(), c.network());
  CHECK(t.computes[0].start_s == Approx(1.01 + 3.01));
  CHECK(adapt::run_migration(m, c, adapt::nominal(c)).time.value() == Approx(4.02));
  CHECK(adapt::run_migration({}, c, adapt::nominal(c)).time == 0_s);
  m.status = {outcome::infeasible, "lost"};
  CHECK_THROWS_WITH(adapt::run_migration(m, c, adapt::nominal(c)), Catch::Contains("infeasible: lost"));
}

TEST_CASE("the strongest device that is there coordinates, and an election is a round of messages") {
  std::vector<device> devices;
  for (int i = 0; i < 5; ++i) devices.push_back({.name = "d" + std::to_string(i), .memory = 4_GB, .compute = 1_TFLOP_per_s});
  devices[1].memory = devices[2].memory = 8_GB;
  devices[3].compute = 0.6_TFLOP_per_s;
  devices[3].accelerators = 2;
  devices[4].compute = 1.1_TFLOP_per_s;
  const cluster c("five", devices, shared_medium{1_MB_per_s, 5_ms});
  adapt::conditions now = adapt::nominal(c);
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    order.push_back(adapt::elect_coordinator(c, now).value);
    now.present[static_cast<std::size_t>(order.back())] = 0;
  }
  CHECK(order == std::vector<int>{3, 4, 1, 2, 0});
  CHECK_THROWS_AS(adapt::elect_coordinator(c, now), invalid_input);
  now.present = {1, 1, 1, 0, 0};
  CHECK(adapt::election_time(c, now, 1_kB).value() == Approx(0.005 + 6 * 1e3 / 1e6));
  now.present = {1, 0, 0, 0, 0};
  CHECK(adapt::election_time(c, now).value() == 0);
}
