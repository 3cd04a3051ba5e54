// SPDX-License-Identifier: BSL-1.0
// Laws of runs over random timelines and plans, under a policy that switches at random and in every way.

#include <hetplan/adapt/run.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/search/ranking.hpp>

#include "adapt/support.hpp"
#include "support/random_source.hpp"

using namespace hetplan;
using namespace hetplan::test;
using adapt::activity;
using adapt_tests::random_chain_plan;

namespace {

/// An energy model that counts sent bytes.
struct bytes_sent {
  [[nodiscard]] joules energy(const device_usage& u, const device&) const { return joules(u.sent.value()); }
};

/// A scenario as plain data, so that a law can change one thing.
struct random_scenario {
  mode how = mode::training;
  std::vector<layer_spec> layers;
  std::vector<double> tensors;
  std::vector<device> devices;
  double capacity = 1e6, latency_s = 0;
  std::vector<plan> plans;
  adapt::timeline events;
  adapt::heartbeat beats;
  adapt::storage_options storage;
  double iteration_s = 1;
  std::uint64_t seed = 0;
  bool background = true;

  [[nodiscard]] planning_graph model() const {
    planning_graph_builder b("chain");
    for (std::size_t l = 0; l < layers.size(); ++l) {
      b.add_layer(layers[l]);
      if (l > 0) b.add_edge(layer_id(l - 1), layer_id(l), bytes(tensors[l]));
    }
    return std::move(b).build();
  }
  [[nodiscard]] cluster home() const { return {"home", devices, shared_medium{bytes_per_second(capacity), seconds(latency_s)}}; }
};

/// Switches at random to plans whose devices it believes present; also rests and asks again. Times scale with the iteration.
struct restless {
  const random_scenario& scenario;
  double calm = 0.3;
  random_source random{scenario.seed + 77};
  long long switched = 0;

  adapt::reaction react(const adapt::situation& s) {
    adapt::reaction r;
    const double unit = scenario.iteration_s;
    const std::size_t i = random.index(scenario.plans.size());
    const double thinking = random.chance(0.5) ? 0 : random.unit() * 3 * unit, again = random.unit() * 8 * unit;
    const int how = random.integer(0, 9);
    const bool asks = random.chance(0.8), rests = random.chance(0.1), goes = !random.chance(calm);
    if (s.running == nullptr) {
      r.next = scenario.plans.front();
    } else if (goes || !s.can_run) {
      r.next = scenario.plans[i];
      r.how = how < 4                          ? adapt::switching::delta
              : how < 8 && scenario.background ? adapt::switching::background
              : how < 9                        ? adapt::switching::through_coordinator
                                               : adapt::switching::at_no_cost;
      r.reached = adapt::rung::known_plan;
      r.thinking = seconds(thinking);
      ++switched;
    }
    if (asks || rests) r.ask_again = s.now + seconds(again);
    r.rest = rests && s.running != nullptr;
    return r;
  }
};

random_scenario some_scenario(std::uint64_t seed, mode how) {
  random_source random(seed * 3 + static_cast<std::uint64_t>(how));
  random_scenario w;
  w.how = how;
  w.seed = seed;
  const int layers = random.integer(2, 6), devices = random.integer(2, 5);
  for (int l = 0; l < layers; ++l) {
    layer_spec x;
    x.name = "l" + std::to_string(l);
    x.forward_flops = flops(random.spread(1e8, 3));
    x.weight = bytes(random.spread(1e5, 3));
    x.trainable = !random.chance(0.3);
    x.kv_bytes_per_token = bytes(random.between(0, 1e3));
    w.layers.push_back(x);
    w.tensors.push_back(random.spread(1e4, 3));
  }
  for (int d = 0; d < devices; ++d) {
    device x;
    x.name = "d" + std::to_string(d);
    x.memory = 1_GB * random.between(1, 2);
    x.compute = flops_per_second(random.spread(1e10, 2));
    x.power.idle = watts(random.between(1, 5));
    x.power.active = x.power.idle + watts(random.between(1, 20));
    w.devices.push_back(x);
  }
  w.capacity = random.spread(3e6, 3);
  w.latency_s = random.chance(0.5) ? 0 : 1e-4;
  const planning_graph model = w.model();
  const cluster c = w.home();
  const int size = random.integer(1, 4), count = random.integer(1, 4);
  for (int p = 0; p < 4; ++p) {
    std::vector<device_id> some = adapt_tests::all_devices(c);
    random.shuffle(some);
    some.resize(random.index(some.size()) + 1);
    w.plans.push_back(random_chain_plan(random, model, c, some, {.mode = how, .context = 10, .tokens = 3}, size, count));
  }
  w.iteration_s = judge(w.plans.front(), model, c, roofline{}).evaluation.latency.value();
  w.events.duration = seconds(w.iteration_s * random.between(10, 40));
  std::vector<char> here(c.size(), 1);
  std::vector<double> times;
  for (int n = random.integer(0, 12); n > 0; --n) times.push_back(random.unit() * w.events.duration.value());
  std::sort(times.begin(), times.end());
  for (const double t : times) {
    const device_id d(random.index(c.size())), other(random.index(c.size()));
    const auto add = [&](adapt::event_payload what) { w.events.events.push_back({seconds(t), what}); };
    switch (random.integer(0, 4)) {
      case 0:
        add(adapt::capacity_becomes{resource_id(0), bytes_per_second(w.capacity * (random.chance(0.1) ? 0 : random.between(0.2, 2)))});
        break;
      case 1: add(adapt::speed_becomes{d, random.chance(0.1) ? 0 : random.between(0.3, 2)}); break;
      case 2:
        if (d != other) add(adapt::transfer_begins{d, other, bytes(w.capacity * w.iteration_s * random.between(0.1, 4))});
        break;
      default:
        if (here[d.index()] == 0) add(adapt::device_joins{d});
        else if (std::count(here.begin(), here.end(), 1) > 1) add(adapt::device_leaves{d});
        else break;
        here[d.index()] = here[d.index()] == 0 ? 1 : 0;
    }
  }
  w.beats.period = seconds(w.iteration_s * random.between(0.1, 1));
  w.beats.timeout = w.beats.period * random.between(1, 3);
  w.beats.probe = w.beats.period * random.unit();
  if (random.chance(0.5)) w.storage.backups = adapt::backup_routine{.period = random.integer(1, 5)};
  if (random.chance(0.3)) w.storage.archive = device_id(random.index(c.size()));
  return w;
}

template <class Energy = linear_power, class... Observers>
adapt::history history_under(const random_scenario& w, Observers&&... observers) {
  const planning_graph model = w.model();
  const cluster c = w.home();
  const planning_problem problem{model, c, roofline{},
                                 job{.workload = w.plans.front().workload, .batch = static_cast<int>(w.plans.front().batch())},
                                 judge_models{plain_memory{}, Energy{}}};
  restless policy{.scenario = w};
  return adapt::run(problem, w.events, policy, adapt::run_options<>{.detector = w.beats, .storage = w.storage}, observers...);
}

template <class F>
void for_random_scenarios(int count, F&& f) {
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    for (std::uint64_t seed = first_seed(); seed < first_seed() + static_cast<std::uint64_t>(count); ++seed) {
      INFO("some_world(" << seed << ", mode(" << static_cast<int>(how) << "))");
      f(some_scenario(seed, how));
    }
  }
}

void require_same_times(const adapt::history& a, const adapt::history& b, double time_factor, double energy_factor) {
  REQUIRE(a.stretches.size() == b.stretches.size());
  for (std::size_t i = 0; i < a.stretches.size(); ++i) {
    INFO("stretch " << i << " of " << a.stretches.size());
    REQUIRE(b.stretches[i].what == a.stretches[i].what);
    REQUIRE(b.stretches[i].iterations == a.stretches[i].iterations);
    REQUIRE(b.stretches[i].plan == a.stretches[i].plan);
    REQUIRE(b.stretches[i].end_s == Approx(time_factor * a.stretches[i].end_s).epsilon(1e-9));
    if (energy_factor > 0) REQUIRE(b.stretches[i].energy_J == Approx(energy_factor * a.stretches[i].energy_J).epsilon(1e-9).margin(1e-9));
  }
  REQUIRE(a.adoptions.size() == b.adoptions.size());
  for (std::size_t i = 0; i < a.adoptions.size(); ++i) {
    CHECK(b.adoptions[i].done_s == Approx(time_factor * a.adoptions[i].done_s).epsilon(1e-9));
    CHECK(b.adoptions[i].moved_bytes == Approx(a.adoptions[i].moved_bytes).epsilon(1e-9).margin(1e-6));
  }
  CHECK(b.lost == a.lost);
  CHECK(b.moved_bytes == Approx(a.moved_bytes).epsilon(1e-9).margin(1e-6));
}

}  // namespace

TEST_CASE("stretches follow one another from the start to the end, and sums are sums") {
  long long adoptions = 0, lost = 0, cut_off = 0, background = 0;
  for_random_scenarios(400, [&](const random_scenario& w) {
    const adapt::history h = history_under(w);
    REQUIRE_FALSE(h.stretches.empty());
    CHECK(h.stretches.front().start_s == 0);
    CHECK(h.stretches.back().end_s == Approx(w.events.duration.value()).epsilon(1e-12));
    long long iterations = 0, off = 0;
    double energy = 0, devices = 0, stalled = 0, moved = 0, paused = 0, migrating = 0;
    for (std::size_t i = 0; i < h.stretches.size(); ++i) {
      const adapt::stretch& s = h.stretches[i];
      if (i > 0) REQUIRE(s.start_s == h.stretches[i - 1].end_s);
      REQUIRE(s.end_s - s.start_s > 1e-12 * w.events.duration.value());
      REQUIRE(s.plan < h.plans.size());
      REQUIRE((s.what == activity::running) == (s.iterations > 0));
      iterations += s.iterations;
      energy += s.energy_J;
      if (s.what == activity::cut_off) ++off;
      if (s.what == activity::stalled || s.what == activity::migrating) stalled += s.end_s - s.start_s;
      if (s.what == activity::migrating) migrating += s.end_s - s.start_s;
    }
    for (const double e : h.device_energy_J) devices += e;
    for (const adapt::adoption& a : h.adoptions) {
      moved += a.moved_bytes;
      paused += a.stall_s;
      CHECK(a.caused_s <= a.decided_s);
      CHECK(a.decided_s <= a.done_s);
      CHECK(a.stall_s <= a.done_s - a.decided_s + 1e-9);
      REQUIRE(a.to < h.plans.size());
      if (a.moved_bytes > 0 && a.stall_s == 0) ++background;
    }
    CHECK(h.iterations == iterations - h.lost);
    CHECK(h.cut_off == off);
    CHECK(h.stall_s == Approx(stalled).margin(1e-9));
    CHECK(migrating >= paused - 1e-9);
    CHECK(h.energy_J == Approx(devices).epsilon(1e-9));
    CHECK(h.energy_J == Approx(energy).epsilon(1e-9));  // bytes cost no energy here
    CHECK(h.moved_bytes >= moved - 1e-6);               // also backups and cancelled migrations
    adoptions += static_cast<long long>(h.adoptions.size());
    lost += h.lost;
    cut_off += h.cut_off;
  });
  CHECK(adoptions > 500);
  CHECK(lost > 0);
  CHECK(cut_off > 100);
  CHECK(background > 20);
}

TEST_CASE("no iteration is done twice or left out at any switch") {
  for_random_scenarios(200, [&](const random_scenario& w) {
    // In an observer's count, completed iterations grow by those of stretches and shrink by lost ones only.
    std::vector<int> completed;
    long long done = 0, ran = 0, lost = 0;
    const adapt::history h = history_under(w, [&](const adapt::run_progress& l) {
      long long all = 0;
      for (const adapt::stretch& s : l.so_far.stretches) all += s.iterations;
      const long long gone = l.so_far.lost - lost;
      REQUIRE(gone <= done);
      for (long long i = done - gone; i < done; ++i) --completed[static_cast<std::size_t>(i)];
      done -= gone;
      for (long long i = done; i < done + all - ran; ++i) {
        if (static_cast<std::size_t>(i) == completed.size()) completed.push_back(0);
        ++completed[static_cast<std::size_t>(i)];
      }
      done += all - ran;
      ran = all;
      lost = l.so_far.lost;
      REQUIRE(l.so_far.iterations == done);
      return control::go;
    });
    for (std::size_t i = 0; i < completed.size(); ++i) CHECK(completed[i] == (static_cast<long long>(i) < h.iterations ? 1 : 0));
  });
}

TEST_CASE("every byte that moves is somebody's: the plan's, a switch's, a backup's") {
  // Without tensors and gradient reductions, devices send only weights.
  long long moving = 0;
  for_random_scenarios(200, [&](random_scenario w) {
    if (w.how == mode::generation) return;  // sends tokens
    std::fill(w.tensors.begin(), w.tensors.end(), 0.0);
    for (plan& p : w.plans) {
      for (stage& s : p.stages) {
        s.devices.resize(1);
        s.devices.front().samples = p.microbatch_size;
      }
    }
    std::erase_if(w.events.events, [](const adapt::event& e) { return std::holds_alternative<adapt::transfer_begins>(e.what); });
    const adapt::history h = history_under<bytes_sent>(w);
    // Bytes of a cut-off migration belong to no adoption.
    double stopped = 0, adopted = 0, adopted_J = 0;
    for (const adapt::stretch& s : h.stretches) stopped += s.what == activity::migrating ? s.energy_J : 0;
    for (const adapt::adoption& a : h.adoptions) {
      adopted += a.moved_bytes;
      adopted_J += a.moved_J;
    }
    CHECK(adopted_J == Approx(adopted).epsilon(1e-9).margin(1e-3));
    CHECK(h.moved_bytes >= adopted * (1 - 1e-9) - 1e-3);
    const double in_vain = h.energy_J - h.moved_bytes;
    CHECK(in_vain >= -1e-9 * h.energy_J - 1e-3);
    CHECK(in_vain <= stopped * (1 + 1e-9) + 1e-3);
    const bool leaves = std::any_of(w.events.events.begin(), w.events.events.end(),
                                    [](const adapt::event& e) { return std::holds_alternative<adapt::device_leaves>(e.what); });
    const bool to_the_end = h.stretches.back().what == activity::migrating;
    if (!leaves && !to_the_end) CHECK(in_vain == Approx(0).margin(1e-9 * h.energy_J + 1e-3));
    moving += h.moved_bytes > 0 ? 1 : 0;
  });
  CHECK(moving > 60);
}

TEST_CASE("twice the time for everything is twice the time") {
  for_random_scenarios(200, [&](const random_scenario& w) {
    random_scenario slow = w;
    for (device& d : slow.devices) d.compute = d.compute / 2;
    slow.capacity /= 2;
    slow.latency_s *= 2;
    slow.iteration_s *= 2;
    slow.events.duration = w.events.duration * 2;
    for (adapt::event& e : slow.events.events) {
      e.at = e.at * 2;
      if (auto* c = std::get_if<adapt::capacity_becomes>(&e.what)) c->capacity = c->capacity / 2;
    }
    slow.beats = {.period = w.beats.period * 2, .timeout = w.beats.timeout * 2, .probe = w.beats.probe * 2};
    require_same_times(history_under(w), history_under(slow), 2, 2);
  });
}

TEST_CASE("other numbers for the same devices change nothing") {
  // The holder with the smallest number sends a tensor, which affects cut-offs, sharing of the medium, and energy. Hence no device
  // leaves, nothing moves in the background, and energies are not compared.
  for_random_scenarios(200, [&](random_scenario w) {
    w.storage = {};
    w.background = false;
    std::erase_if(w.events.events, [](const adapt::event& e) {
      return !std::holds_alternative<adapt::capacity_becomes>(e.what) && !std::holds_alternative<adapt::speed_becomes>(e.what);
    });
    random_scenario other = w;
    const std::size_t n = w.devices.size();
    std::vector<device_id> to;
    for (std::size_t d = 0; d < n; ++d) to.push_back(device_id((d + 1) % n));
    for (std::size_t d = 0; d < n; ++d) other.devices[to[d].index()] = w.devices[d];
    for (plan& p : other.plans) p = rename_devices(p, to, n);
    for (adapt::event& e : other.events.events) {
      if (auto* x = std::get_if<adapt::speed_becomes>(&e.what)) x->device = to[x->device.index()];
    }
    if (other.storage.archive) other.storage.archive = to[w.storage.archive->index()];
    require_same_times(history_under(w), history_under(other), 1, 0);
  });
}

TEST_CASE("the same run twice is the same history, to the last digit") {
  for_random_scenarios(30, [&](const random_scenario& w) { CHECK(history_under(w) == history_under(w)); });
}

TEST_CASE("without events a plan's iterations are its evaluation's") {
  struct only {
    plan what;
    adapt::reaction react(const adapt::situation& s) const {
      adapt::reaction r;
      if (s.running == nullptr) r.next = what;
      return r;
    }
  };
  for_random_scenarios(30, [&](const random_scenario& w) {
    const planning_graph model = w.model();
    const cluster c = w.home();
    const plan& only_one = w.plans.front();
    const planning_problem problem{model, c, roofline{}, job{.workload = only_one.workload, .batch = static_cast<int>(only_one.batch())}};
    const evaluation e = judge(w.plans.front(), model, c, roofline{}).evaluation;
    only policy{w.plans.front()};
    const adapt::history h = adapt::run(problem, {e.latency * 1000.5, {}}, policy);
    REQUIRE(h.stretches.size() == 2);
    CHECK(h.iterations == 1000);
    CHECK(h.stretches[0].response_s == e.response().value());
    CHECK(h.stretches[0].energy_J == Approx(1000 * e.energy().value()).epsilon(1e-12));
    CHECK(h.cut_off == 1);
  });
}
