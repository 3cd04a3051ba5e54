// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>

#include "support/by_hand.hpp"
#include "support/small_problem.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// The best estimate over all plans of the space, by exhaustion; nothing where none fits.
///
/// @param every_run  also groups that leave out a device from the middle of a class of equal ones.
template <class Problem>
std::optional<double> shortest_by_exhaustion(const Problem& problem, bool every_run) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = uncontended(problem.cluster, duplex::half);
  const layer_sequence row = sequence_of(chain);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const partition::search_tables tables(chain, row, view, problem.cost, problem.models.memory, linear_power{}, problem.job.workload,
                                        sizes.back());
  std::vector<device_id> order;
  std::vector<std::size_t> position(view.size());
  std::vector<char> class_ends(view.size() + 1, 0);  // by position in the order
  for (const auto& members : tables.classes) {
    for (const device_id d : members) {
      position[d.index()] = order.size();
      order.push_back(d);
    }
    class_ends[order.size()] = 1;
  }
  REQUIRE(std::is_sorted(order.begin(), order.end(),
                         [&](device_id a, device_id b) { return view[a].usable_memory() > view[b].usable_memory(); }));
  const auto keeps_classes = [&](const plan& p) {
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      const std::size_t end = position[p.stages[s].devices.back().device.index()] + 1;
      const std::size_t next = s + 1 < p.stages.size() ? position[p.stages[s + 1].devices.front().device.index()] : view.size();
      if (end != next && class_ends[end] == 0) return false;
    }
    return true;
  };
  for (const warmup_rule warmup : {warmup_rule::hide_communication, warmup_rule::depth}) {
    std::optional<double> shortest;
    for (const int size : sizes) {
      plan blank = blank_plan(problem, "brute force", size);
      blank.schedule.kind = schedule_kind::one_f_one_b;
      partition::space_options space;
      space.device_order = order;
      space.contiguous_groups = true;
      space.warmup = warmup;
      partition::for_each_plan(row, chain, view, problem.cost, problem.models.memory, blank, space, [&](const plan& p) {
        if (!every_run && !keeps_classes(p)) return;
        const evaluation e = estimate(p, chain, view, problem.cost, problem.models.memory);
        if (!is_finite(e.latency) || !within_memory(e, view)) return;
        if (!shortest || e.latency.value() < *shortest) shortest = e.latency.value();
      });
    }
    if (shortest) return shortest;
  }
  return std::nullopt;
}

/// The planner's own estimate of what it chooses; nothing where it finds nothing that fits its view.
template <class Problem>
std::optional<double> shortest_by_planner(const Problem& problem, plan& chosen) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = uncontended(problem.cluster, duplex::half);
  chosen = recipes::choose_on_view(problem, "asteroid", chain, view,
                                   {.warmups = {warmup_rule::hide_communication, warmup_rule::depth}, .memory_first = true});
  REQUIRE_FALSE(validate(chosen, chain, view));
  REQUIRE_FALSE(validate(chosen, problem.model, problem.cluster));
  const evaluation e = estimate(chosen, chain, view, problem.cost, problem.models.memory);
  if (!within_memory(e, view)) return std::nullopt;
  return e.latency.value();
}

/// Asteroid's Algorithm 1 as it is written, with blocks of one sample; empty where memory is too small.
///
/// @param to_least_loaded  phase 2 as printed, to the device that is fastest now; else to the one that ends first with it.
template <class Time>
std::vector<int> algorithm_1(int samples, const std::vector<int>& caps, const Time& time_s, bool to_least_loaded) {
  const std::size_t n = caps.size();
  std::vector<int> shares(n, 0);
  const auto has_room = [&](std::size_t d) { return shares[d] < std::min(caps[d], samples); };
  // Lines 1-12: in proportion to capacity (eq. 9), at most what memory holds; the rest again among those with room.
  for (int left = samples; left > 0;) {
    double capacity = 0;
    std::size_t strongest = n;
    for (std::size_t d = 0; d < n; ++d) {
      if (!has_room(d)) continue;
      capacity += 1 / time_s(d, samples);
      if (strongest == n || time_s(d, samples) < time_s(strongest, samples)) strongest = d;
    }
    if (strongest == n) return {};
    int given = 0;
    for (std::size_t d = 0; d < n; ++d) {
      if (!has_room(d)) continue;
      const int part = std::min(static_cast<int>(left / time_s(d, samples) / capacity), std::min(caps[d], samples) - shares[d]);
      shares[d] += part;
      given += part;
    }
    if (given == 0) {  // fractions of a sample only
      ++shares[strongest];
      given = 1;
    }
    left -= given;
  }
  // Lines 13-20: from the straggler to the fastest device with memory, as long as that makes no slower straggler.
  const auto busy_s = [&](std::size_t d) { return shares[d] == 0 ? 0 : time_s(d, shares[d]); };
  for (;;) {
    std::size_t straggler = 0, receiver = n;
    for (std::size_t d = 1; d < n; ++d) {
      if (busy_s(d) > busy_s(straggler)) straggler = d;
    }
    const auto key = [&](std::size_t d) { return to_least_loaded ? busy_s(d) : time_s(d, shares[d] + 1); };
    for (std::size_t d = 0; d < n; ++d) {
      if (d != straggler && has_room(d) && (receiver == n || key(d) < key(receiver))) receiver = d;
    }
    if (receiver == n || time_s(receiver, shares[receiver] + 1) >= busy_s(straggler)) return shares;
    --shares[straggler];
    ++shares[receiver];
  }
}

/// Three stages on 1, 2 and 2 devices; microbatches of 2 samples. Weights of 4, 6 and 12 B.
planning_graph three_layers(double first_gradient = 0.5, bool frozen_middle = false) {
  layer_spec a = work_of("a", 0.5, 0.25, 0.25), b = work_of("b", 2, 1, 2), c = work_of("c", 1, 1, 1);
  a.weight = bytes(4);
  b.weight = bytes(6);
  c.weight = bytes(12);
  a.activation = bytes(10);
  b.activation = bytes(20);
  c.activation = bytes(30);
  b.trainable = !frozen_middle;
  return model_of({a, b, c}, {{0, 1, 0.5, first_gradient}, {1, 2, 0.25, 0.25}});
}
plan three_stages(int microbatches) {
  return plan_of(mode::training, 2, microbatches,
                 {stage_of({0}, {{0, 2}}), stage_of({1}, {{1, 1}, {2, 1}}), stage_of({2}, {{3, 1}, {4, 1}})}, schedule_kind::one_f_one_b);
}

double volume_of(const plan& p, const planning_graph& m, const cluster& c) { return tasks::expand(p, m, c, roofline{}).volume().value(); }

}  // namespace

TEST_CASE("Asteroid's planner finds what going through its whole space finds", "[long]") {
  int fits = 0, lowered = 0, nothing = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 600; ++seed) {
    const small_problem s(seed, seed % 3 == 0);
    const auto problem = s.problem();
    INFO(s.drawn.what);
    plan chosen;
    const auto mine = shortest_by_planner(problem, chosen), best = shortest_by_exhaustion(problem, false);
    if (best) {
      ++fits;
      lowered += chosen.schedule.warmup.empty() ? 0 : 1;
      REQUIRE(mine.has_value());
      REQUIRE(*mine == Approx(*best).epsilon(1e-9));
      if (seed % 3 != 0) REQUIRE(*best == Approx(*shortest_by_exhaustion(problem, true)).epsilon(1e-9));  // no twins: no other runs
    } else {
      ++nothing;
      REQUIRE_FALSE(mine.has_value());
    }
    const plan_result r = recipes::asteroid(problem, minimize_latency{});
    REQUIRE(r.candidates == 1);
    if (r.status.ok()) {
      REQUIRE(r.plans.size() == 1);
      REQUIRE(r.plans.front().plan.stages == chosen.stages);
      REQUIRE(r.plans.front().plan.schedule == chosen.schedule);
    } else {
      REQUIRE(r.binding->kind == limit_kind::memory);
    }
    if (best) REQUIRE(r.status.ok());  // memory is the same on the cluster: its warm-ups are no larger than the chain's
  }
  INFO(fits << " problems fit, " << lowered << " of them with lower warm-up, " << nothing << " do not");
  REQUIRE(fits >= 200);
  REQUIRE(lowered > 2);
  REQUIRE(nothing > 10);
}

TEST_CASE("Algorithm 1 as written and the greedy hand-out end with the same slowest device") {
  int worse_as_printed = 0, too_little = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 600; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const auto n = static_cast<std::size_t>(random.integer(1, 5));
    const int samples = random.integer(1, 16);
    std::vector<int> caps;
    std::vector<std::vector<double>> time(n, {0});
    for (std::size_t d = 0; d < n; ++d) {
      caps.push_back(random.chance(0.5) ? samples : random.integer(0, samples));
      const double rate = random.between(0.2, 2), launch = random.between(0, 3);
      for (int x = 1; x <= samples; ++x)
        time[d].push_back(std::max(time[d].back(), launch + rate * x * random.between(0.7, 1)));  // not linear
    }
    const auto time_s = [&](std::size_t d, int x) { return time[d][static_cast<std::size_t>(x)]; };
    const auto slowest = [&](const std::vector<int>& shares) {
      double worst = 0;
      int total = 0;
      for (std::size_t d = 0; d < n; ++d) {
        REQUIRE(shares[d] >= 0);
        REQUIRE(shares[d] <= caps[d]);
        total += shares[d];
        worst = std::max(worst, time_s(d, shares[d]));
      }
      REQUIRE(total == samples);
      return worst;
    };
    const auto greedy = partition::allocate(samples, caps, time_s);
    const std::vector<int> written = algorithm_1(samples, caps, time_s, false), printed = algorithm_1(samples, caps, time_s, true);
    REQUIRE(greedy.has_value() == !written.empty());
    REQUIRE(greedy.has_value() == !printed.empty());
    if (!greedy) {
      ++too_little;
      continue;
    }
    REQUIRE(slowest(*greedy) == slowest(written));
    REQUIRE(slowest(*greedy) <= slowest(printed));
    worse_as_printed += slowest(*greedy) < slowest(printed) ? 1 : 0;
  }
  // The device that is fastest now may be slowed down most by one more sample: there the printed algorithm stops early.
  CHECK(worse_as_printed > 0);
  CHECK(too_little > 20);
}

TEST_CASE("Algorithm 1 by hand: in proportion, clamped, handed on, and one sample moved") {
  // Capacities 1/8, 1/16, 1/16 of 8 samples: 4, 2, 2. The second has memory for 1: what it leaves goes to the first.
  const auto linear = [](std::size_t d, int x) { return x * (d == 0 ? 1.0 : 2.0); };
  CHECK(algorithm_1(8, {8, 8, 8}, linear, true) == std::vector<int>{4, 2, 2});
  CHECK(partition::allocate(8, {8, 8, 8}, linear) == std::vector<int>{4, 2, 2});
  CHECK(algorithm_1(8, {8, 1, 8}, linear, true) == std::vector<int>{5, 1, 2});
  CHECK(partition::allocate(8, {8, 1, 8}, linear) == std::vector<int>{5, 1, 2});
  // The second device takes 3 s whatever it does, as the first does with all 4: halves at first, then one sample moves.
  const auto flat = [](std::size_t d, int x) { return d == 0 ? 0.75 * x : 3.0; };
  CHECK(algorithm_1(4, {4, 4}, flat, true) == std::vector<int>{3, 1});
  CHECK(partition::allocate(4, {4, 4}, flat) == std::vector<int>{3, 1});
}

TEST_CASE("memory by hand under the four policies of section 5.4: weights, gradients, optimizer, and K activations of a share") {
  // Adam keeps 4 bytes for each byte of weights. Shares 2, 1, 1; depths 3, 2, 1; 10 microbatches.
  const planning_graph m = three_layers();
  const cluster c = wired(5);
  const auto memory = [&](const plan& p) {
    std::vector<double> all;
    const evaluation e = estimate(p, m, c, roofline{}), simulated = judge(p, m, c, roofline{}).evaluation;
    for (const device& d : c.devices()) {
      all.push_back(e.devices[d.id.index()].peak_memory.value());
      CHECK(simulated.devices[d.id.index()].peak_memory.value() == near(all.back()));
    }
    return all;
  };
  plan p = three_stages(10);
  p.workload.optimizer_factor = 2;
  const auto with = [&](warmup_rule rule) {
    set_warmup(p, m, rule);
    return memory(p);
  };
  using row = std::vector<double>;
  CHECK(with(warmup_rule::everything) == row{16 + 10 * 20, 24 + 10 * 20, 24 + 10 * 20, 48 + 10 * 30, 48 + 10 * 30});     // M
  CHECK(with(warmup_rule::one_more) == row{16 + 7 * 20, 24 + 5 * 20, 24 + 5 * 20, 48 + 3 * 30, 48 + 3 * 30});            // 2 (P - p) + 1
  CHECK(with(warmup_rule::depth) == row{16 + 3 * 20, 24 + 2 * 20, 24 + 2 * 20, 48 + 1 * 30, 48 + 1 * 30});               // P - p
  CHECK(with(warmup_rule::hide_communication) == row{16 + 5 * 20, 24 + 3 * 20, 24 + 3 * 20, 48 + 1 * 30, 48 + 1 * 30});  // 2 (P - p) - 1
  // No more than there are.
  p.microbatches = 4;
  CHECK(with(warmup_rule::one_more) == row{16 + 4 * 20, 24 + 4 * 20, 24 + 4 * 20, 48 + 3 * 30, 48 + 3 * 30});
  CHECK(with(warmup_rule::everything) == row{16 + 4 * 20, 24 + 4 * 20, 24 + 4 * 20, 48 + 4 * 30, 48 + 4 * 30});
  // A replica group whose shares differ: 3 + 1 samples.
  plan uneven = plan_of(mode::training, 4, 5, {stage_of({0}, {{0, 4}}), stage_of({1, 2}, {{1, 3}, {2, 1}})}, schedule_kind::one_f_one_b);
  uneven.workload.optimizer_factor = 0;
  CHECK(memory(uneven) == row{8 + 3 * 40, 36 + 1 * 150, 36 + 1 * 50, 0, 0});
}

TEST_CASE("latency by hand after equations 4 to 6: a late stage's reduction ends the round, though another step dominates") {
  // Steps, forward and backward of a microbatch: stage (1, 1), link (1, 1), stage (2, 3), link (0.5, 0.5), stage (1, 2); M = 4.
  // Aligned totals M e_s + sum of e before: 8, 10, 24, 13, 22: step 2 dominates, T_e = 20 there. By eq. 6 T_e is
  // 20 + 2 + 2 = 24, 22, 20, 20 - 5 = 15, 15 - 1 = 14; T_w is 0, 1, 2, 4, 4.5; T_a, by eq. 5, 6 and 12 s for the rings of
  // 6 and 12 bytes in groups of two. Sums: 24, 23, 28, 19, 30.5.
  const planning_graph m = three_layers();
  const plan p = three_stages(4);
  CHECK(estimate(p, m, wired(5), roofline{}).latency.value() == near(30.5));
  const pipeline_steps steps = make_steps(p, m, wired(5), roofline{});
  CHECK(steps.stages[1].collective_s == near(6));
  CHECK(steps.stages[2].collective_s == near(12));
  CHECK(steps.links[0].total_s == near(2));
  // Without the last ring the middle one ends the round: 28. Without both, the first step: 24.
  plan single = p;
  single.stages[2] = stage_of({2}, {{3, 2}});
  const auto half = [](double weight) {  // half the work a sample on the one device: the same step
    layer_spec a = work_of("a", 0.5, 0.25, 0.25), b = work_of("b", 2, 1, 2), c = work_of("c", 0.5, 0.5, 0.5);
    b.weight = bytes(weight);
    return model_of({a, b, c}, {{0, 1, 0.5, 0.5}, {1, 2, 0.25, 0.25}});
  };
  CHECK(estimate(single, half(6), wired(5), roofline{}).latency.value() == near(28));
  CHECK(estimate(single, half(0), wired(5), roofline{}).latency.value() == near(24));
  CHECK(estimate(p, three_layers(0.5, true), wired(5), roofline{}).latency.value() == near(30.5));  // frozen: no ring in the middle
}

TEST_CASE("communication volume of a hybrid pipeline by hand: rings and both ways of each boundary") {
  const plan p = three_stages(4);
  const cluster c = wired(5);
  // 2 (2 - 1) (6 + 12) of the rings, 2 x 8 samples x (0.5 + 0.25) over the boundaries.
  CHECK(volume_of(p, three_layers(), c) == near(36 + 12));
  CHECK(volume_of(p, three_layers(0), c) == near(36 + 8));            // nothing comes back over the first boundary
  CHECK(volume_of(p, three_layers(0.5, true), c) == near(24 + 12));   // frozen weights are not reduced
  CHECK(volume_of(p, three_layers(), wireless(5)) == near(36 + 12));  // what is moved, however
  const plan group = plan_of(mode::training, 8, 1, {stage_of({0, 1, 2}, {{0, 2}, {1, 2}, {2, 4}})});
  CHECK(volume_of(group, three_layers(), c) == near(2 * 2 * 22));  // data parallel: 2 (3 - 1) W
  CHECK(volume_of(plan_of(mode::training, 8, 1, {stage_of({0, 1, 2}, {{0, 8}})}), three_layers(), c) == 0);
  plan inference = p;
  inference.workload.mode = mode::inference;
  CHECK(volume_of(inference, three_layers(), c) == near(6));  // forward only, no rings
}

TEST_CASE("communication volume with a parameter server by hand: each worker's model there and back, but for the server's own") {
  const planning_graph m = three_layers();
  const cluster c = wired(5);
  // Two workers of 4 samples: layers a b | c on devices 0 1, and a | b c on devices 2 3.
  plan p = plan_of(mode::training, 2, 4,
                   {stage_of({0, 1}, {{0, 2}}), stage_of({2}, {{1, 2}}), stage_of({0}, {{2, 2}}, 0, 1), stage_of({1, 2}, {{3, 2}}, 0, 1)},
                   schedule_kind::one_f_one_b);
  p.pipelines = {4, 4};
  const double activations = 2 * 4 * 0.25 + 2 * 4 * 0.5;
  // Nobody of the workers: 2 G W = 2 x 2 x 22, as eq. 1 has it.
  p.parameter_server = device_id(4);
  CHECK(volume_of(p, m, c) == near(2 * 2 * 22 + activations));
  // Device 0 holds a and b: what it trains stays with it, there and back.
  p.parameter_server = device_id(0);
  CHECK(volume_of(p, m, c) == near(2 * 2 * 22 - 2 * (4 + 6) + activations));
  p.parameter_server = device_id(3);
  CHECK(volume_of(p, m, c) == near(2 * 2 * 22 - 2 * (6 + 12) + activations));
  // Frozen weights go nowhere.
  CHECK(volume_of(p, three_layers(0.5, true), c) == near(2 * 2 * 16 - 2 * 12 + activations));
  // Without a server, a ring of two for each set of holders moves 2 W as well.
  p.parameter_server.reset();
  CHECK(volume_of(p, m, c) == near(2 * 22 + activations));
  // One worker: activations alone.
  plan one = plan_of(mode::training, 2, 4, {stage_of({0, 1}, {{0, 2}}), stage_of({2}, {{1, 2}})}, schedule_kind::one_f_one_b);
  one.parameter_server = device_id(4);
  CHECK(volume_of(one, m, c) == near(2 * 8 * 0.25));
}

TEST_CASE("the volume of what Asteroid and HetPipe choose is what equations 2 and 1 say") {
  int hybrid = 0, served = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 400; ++seed) {
    small_problem s(seed, true);
    s.job.workload.mode = mode::training;
    s.job.batch = 4;
    s.job.microbatch_sizes.clear();
    const auto problem = s.problem();
    INFO(s.drawn.what);
    const auto boundaries = [&](const plan& p) {
      double total = 0;
      const stage_graph g = make_stage_graph(p, problem.model);
      for (const stage_edge& e : g.edges) {
        total += static_cast<double>(p.pipeline_samples(p[e.from].pipeline)) * (e.forward_cut + e.backward_cut).value();
      }
      return total;
    };
    if (const plan_result r = recipes::asteroid(problem, minimize_latency{}); r.status.ok()) {
      const plan& p = r.plans.front().plan;
      double rings = 0;
      for (const stage& st : p.stages) {
        rings += 2 * static_cast<double>(st.devices.size() - 1) * trainable_bytes(problem.model, st);
        hybrid += p.stages.size() > 1 && st.devices.size() > 1;
      }
      REQUIRE(volume_of(p, problem.model, problem.cluster) == Approx(rings + boundaries(p)).epsilon(1e-9).margin(1e-9));
    }
    const cluster roomy = without_memory_limits(problem.cluster);
    const planning_problem easy{problem.model, roomy, roofline{}, s.job};
    const plan_result r = recipes::hetpipe(easy, minimize_latency{});
    REQUIRE(r.status.ok());
    const plan& p = r.plans.front().plan;
    double exchanged = 0;
    if (p.parameter_server) {
      ++served;
      for (const stage& st : p.stages) {
        if (st.devices.front().device != *p.parameter_server) exchanged += 2 * trainable_bytes(problem.model, st);
      }
    }
    REQUIRE(volume_of(p, problem.model, roomy) == Approx(exchanged + boundaries(p)).epsilon(1e-9).margin(1e-9));
  }
  CHECK(hybrid > 1);
  CHECK(served > 5);
}
