// SPDX-License-Identifier: BSL-1.0
// Runs over a timeline against a naive run that judges every iteration anew with all events to come: no windows, no reuse of equal
// iterations. Times agree to one part in 10^9, as semantics promises.

#include <hetplan/adapt/run.hpp>
#include <hetplan/search/ranking.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;
using adapt::activity;

namespace {

bool not_after(double a_s, double b_s) { return a_s <= b_s + 1e-9 * b_s; }

struct turn {
  double from_s;
  plan what;
};

/// A policy that switches to the scheduled plan at no cost, as soon as its devices are present.
struct by_the_clock {
  std::vector<turn> turns;

  adapt::reaction react(const adapt::situation& s) {
    adapt::reaction r;
    const plan* mine = nullptr;
    for (const turn& t : turns) {
      if (not_after(t.from_s, s.now.value())) {
        mine = &t.what;
      } else {
        r.ask_again = seconds(t.from_s);
        break;
      }
    }
    if (s.running == nullptr || *s.running != *mine) {
      r.next = *mine;
      r.how = adapt::switching::at_no_cost;
    }
    return r;
  }
};

/// Results that both runs report.
struct told {
  std::vector<double> ends_s;
  std::vector<double> device_J;
  long long cut_off = 0;
  double stall_s = 0;
};

class naive_run {
 public:
  naive_run(const planning_graph& m, const cluster& c, const adapt::timeline& t, const std::vector<turn>& turns)
      : model_(m), cluster_(c), timeline_(t), turns_(turns), conditions_(adapt::nominal(c)) {
    out_.device_J.assign(c.size(), 0);
    for (const adapt::event& e : t.events) {
      if (const auto* x = std::get_if<adapt::transfer_begins>(&e.what)) {
        foreign_.push_back({x->from, x->to, x->volume, e.at + c.network().find(x->from, x->to)->latency, x->priority});
      }
    }
  }

  told run() {
    const double end = timeline_.duration.value();
    while (!not_after(end, now_)) {
      while (next_ < timeline_.events.size() && not_after(timeline_.events[next_].at.value(), now_))
        adapt::apply(conditions_, timeline_.events[next_++]);
      choose();
      const std::vector<device_id> devices = devices_of(*running_);
      const auto works = [&](device_id d) { return conditions_.works(d); };
      const auto carries = [&](resource_id r) { return conditions_.capacity[r.index()].value() > 0; };
      const std::vector<resource_id> resources = resources_of(*running_);
      const bool can_run = std::all_of(devices.begin(), devices.end(), works) && std::all_of(resources.begin(), resources.end(), carries);
      if (can_run) iterate(devices, resources);
      else stall(devices);
    }
    return out_;
  }

 private:
  /// Returns the devices of a plan in ascending order, including a parameter server that reduces gradients.
  std::vector<device_id> devices_of(const plan& p) const {
    const tasks::task_graph g = tasks::expand(p, model_, cluster_, roofline{});
    std::vector<device_id> all;
    for (std::size_t d = 0; d < g.used.size(); ++d) {
      if (g.used[d] != 0) all.push_back(device_id(d));
    }
    return all;
  }
  /// Returns the resources that the plan's bytes use.
  std::vector<resource_id> resources_of(const plan& p) const {
    const tasks::task_graph g = tasks::expand(p, model_, cluster_, roofline{});
    std::vector<resource_id> all;
    for (const tasks::transfer& t : g.transfers) {
      for (const resource_use& u : g.routes[t.route].via) {
        if (t.volume_bytes > 0) all.push_back(u.resource);
      }
    }
    return all;
  }
  /// Returns the scheduled plan if its devices are present, else the running one.
  const plan* choice(double now, const adapt::conditions& then) const {
    const plan* mine = running_;
    for (const turn& t : turns_) {
      if (not_after(t.from_s, now)) mine = &t.what;
    }
    bool there = true;
    for (const stage& s : mine->stages) {
      for (const assignment& a : s.devices) there = there && then.present[a.device.index()] != 0;
    }
    return running_ == nullptr || there ? mine : running_;
  }
  void choose() { running_ = choice(now_, conditions_); }
  /// Returns the changes from now until before `before_s`, and all traffic.
  simulator_options everything_from_now(double before_s = std::numeric_limits<double>::infinity()) const {
    simulator_options o = adapt::from_the_start(conditions_, cluster_);
    for (std::size_t i = next_; i < timeline_.events.size() && !not_after(before_s, timeline_.events[i].at.value()); ++i) {
      const seconds at = timeline_.events[i].at - seconds(now_);
      if (const auto* r = std::get_if<adapt::capacity_becomes>(&timeline_.events[i].what))
        o.capacities.push_back({at, r->resource, r->capacity});
      if (const auto* s = std::get_if<adapt::speed_becomes>(&timeline_.events[i].what)) o.speeds.push_back({at, s->device, s->speed});
    }
    for (background_transfer f : foreign_) {
      f.release = seconds(std::max(0.0, f.release.value() - now_));
      o.background.push_back(f);
    }
    return o;
  }
  void take_over(const trace& t) {
    for (std::size_t f = 0; f < foreign_.size(); ++f) foreign_[f].volume = bytes(t.background_left[f]);
  }
  void iterate(const std::vector<device_id>& devices, const std::vector<resource_id>& resources) {
    double until = timeline_.duration.value();
    adapt::conditions then = conditions_;
    for (std::size_t i = next_; i < timeline_.events.size(); ++i) {
      const adapt::event& e = timeline_.events[i];
      adapt::apply(then, e);
      const auto* gone = std::get_if<adapt::device_leaves>(&e.what);
      const auto* still = std::get_if<adapt::speed_becomes>(&e.what);
      const auto* down = std::get_if<adapt::capacity_becomes>(&e.what);
      const auto among = [](const auto& all, auto x) { return std::find(all.begin(), all.end(), x) != all.end(); };
      // A halt is known at once, and ends the iteration if another plan is scheduled.
      const bool halts = (still != nullptr && still->speed == 0 && among(devices, still->device)) ||
                         (down != nullptr && down->capacity.value() == 0 && among(resources, down->resource));
      if ((gone != nullptr && among(devices, gone->device)) || (halts && *choice(e.at.value(), then) != *running_))
        until = std::min(until, e.at.value());
    }
    // An iteration that ends at the instant of an event is not affected by it.
    judgement j;
    j.trace.status = {outcome::stopped, ""};
    for (std::size_t i = next_; i < timeline_.events.size() && !j.trace.status.ok(); ++i) {
      const double at = std::min(until, timeline_.events[i].at.value());
      j = went(at, at * (1 + 1e-9));
    }
    if (!j.trace.status.ok()) j = went(until, until * (1 + 1e-9));
    if (!j.trace.status.ok()) j = went(until, until);
    for (std::size_t d = 0; d < cluster_.size(); ++d) out_.device_J[d] += j.evaluation.devices[d].energy.value();
    take_over(j.trace);
    if (j.trace.status.ok()) {
      now_ += j.trace.latency.value();
      out_.ends_s.push_back(now_);
    } else {
      now_ = until;
      ++out_.cut_off;
    }
  }
  judgement went(double before_s, double until_s) const {
    simulator_options o = everything_from_now(before_s);
    o.until = seconds(until_s - now_);
    return judge(*running_, model_, cluster_, roofline{}, {}, o);
  }
  void stall(const std::vector<device_id>& devices) {
    double until = next_ < timeline_.events.size() ? std::min(timeline_.events[next_].at.value(), timeline_.duration.value())
                                                   : timeline_.duration.value();
    for (const turn& t : turns_) {
      if (!not_after(t.from_s, now_)) until = std::min(until, t.from_s);
    }
    for (const device_id d : devices) {
      if (conditions_.present[d.index()] != 0)
        out_.device_J[d.index()] += linear_power{}.energy({.total = seconds(until - now_)}, cluster_[d]).value();
    }
    // Foreign traffic goes on alone while the plan's devices stand still.
    simulator_options o = everything_from_now();
    o.until = seconds(until - now_);
    for (const device_id d : devices) o.speeds.push_back({seconds(0), d, 0});
    std::erase_if(o.speeds, [](const speed_change& s) { return s.speed > 0; });
    plan still = *running_;
    still.sharing_policy = sharing::fair_share;
    const judgement j = judge(still, model_, cluster_, roofline{}, {}, o);
    REQUIRE_FALSE(j.trace.status.ok());
    take_over(j.trace);
    out_.stall_s += until - now_;
    now_ = until;
  }

  const planning_graph& model_;
  const cluster& cluster_;
  const adapt::timeline& timeline_;
  const std::vector<turn>& turns_;
  adapt::conditions conditions_;
  std::vector<background_transfer> foreign_;  ///< past and future transfers, with `release` in timeline time
  const plan* running_ = nullptr;
  std::size_t next_ = 0;
  double now_ = 0;
  told out_;
};

told from_history(const adapt::history& h) {
  told t{.ends_s = {}, .device_J = h.device_energy_J, .cut_off = h.cut_off, .stall_s = h.stall_s};
  for (const adapt::stretch& s : h.stretches) {
    for (long long i = 1; i <= s.iterations; ++i)
      t.ends_s.push_back(s.start_s + (s.end_s - s.start_s) * static_cast<double>(i) / static_cast<double>(s.iterations));
  }
  return t;
}

/// Returns random changes of capacities, speeds and traffic; some devices leave and rejoin. With `ties`, only changes at ends of
/// iterations that keep their length: devices that leave, return, halt or resume.
adapt::timeline changes(random_source& random, const cluster& c, double iteration_s, int most_events, double longest, bool ties) {
  adapt::timeline t{seconds(iteration_s * (ties ? random.integer(3, static_cast<int>(longest)) : random.between(3, longest)))};
  std::vector<std::size_t> order(c.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  random.shuffle(order);
  const std::size_t leaving = random.chance(0.6) ? random.index(c.size()) : 0;  // the other devices stay and exchange foreign traffic
  std::vector<char> here(c.size(), 1);
  std::vector<double> times;
  for (int n = random.integer(0, most_events); n > 0; --n) {
    times.push_back(random.unit() * t.duration.value() * 1.1);
    if (ties) times.back() = iteration_s * std::ceil(times.back() / iteration_s);
  }
  std::sort(times.begin(), times.end());
  for (const double at : times) {
    const auto add = [&](adapt::event_payload what) { t.events.push_back({seconds(at), what}); };
    const int kind = ties ? random.integer(3, 7) : random.integer(0, 9);
    const std::size_t resources = c.network().resources().size();
    if (kind < 3 && resources > 0) {
      const std::size_t r = random.index(resources);
      const double factor = random.chance(0.15) ? 0 : random.between(0.1, 2);
      add(adapt::capacity_becomes{resource_id(r), c.network().resources()[r].capacity * factor});
    } else if (kind < 6) {
      const std::size_t d = random.index(c.size());
      if (ties) add(adapt::speed_becomes{device_id(d), random.chance(0.5) ? 0.0 : 1.0});
      else add(adapt::speed_becomes{device_id(d), random.chance(0.1) ? 0 : random.between(0.2, 2)});
    } else if (kind < 8 && leaving > 0) {
      const std::size_t d = order[random.index(leaving)];
      if (here[d] != 0) add(adapt::device_leaves{device_id(d)});
      else add(adapt::device_joins{device_id(d)});
      here[d] = here[d] != 0 ? 0 : 1;
    } else if (!ties && c.size() - leaving > 1) {
      const std::size_t from = order[leaving + random.index(c.size() - leaving)], to = order[leaving + random.index(c.size() - leaving)];
      const route* way = c.network().find(device_id(from), device_id(to));
      if (from == to || way == nullptr || way->via.empty()) continue;
      const double volume = c.network().peak_bandwidth(device_id(from), device_id(to)).value() * iteration_s * random.between(0, 5);
      add(adapt::transfer_begins{device_id(from), device_id(to), bytes(volume), random.integer(-1, 2)});
    }
  }
  return t;
}

/// Returns a plan with all layers on one device, for the same batch.
plan plan_of_one_device(const instance& i, random_source& random) {
  plan p{.workload = i.plan.workload, .microbatch_size = i.plan.microbatch_size, .microbatches = i.plan.microbatches};
  p.stages.push_back({.devices = {{device_id(random.index(i.devices.size())), i.plan.microbatch_size}}});
  for (std::size_t l = 0; l < i.layers.size(); ++l) p.stages.front().layers.push_back(layer_id(l));
  return p;
}

void require_same(const told& simulated, const told& naive, double duration_s) {
  REQUIRE(simulated.ends_s.size() == naive.ends_s.size());
  for (std::size_t i = 0; i < naive.ends_s.size(); ++i) REQUIRE(simulated.ends_s[i] == Approx(naive.ends_s[i]).epsilon(1e-9));
  CHECK(simulated.cut_off == naive.cut_off);
  CHECK(simulated.stall_s == Approx(naive.stall_s).epsilon(1e-9).margin(1e-9 * duration_s));
  for (std::size_t d = 0; d < naive.device_J.size(); ++d)
    CHECK(simulated.device_J[d] == Approx(naive.device_J[d]).epsilon(1e-9).margin(1e-12));
}

/// Compares both runs on `jobs` random jobs and returns the iterations and cut-offs. With `ties`, a job has one plan.
std::pair<long long, long long> compare(int jobs, bool ties) {
  long long iterations = 0, cut_off = 0;
  for_random_instances(jobs, [&](const instance& i) {
    const planning_graph model = i.model();
    const cluster c = i.cluster();
    random_source random(i.plan.stages.size() * 1000003 + static_cast<std::size_t>(i.plan.batch()) * 101 + i.layers.size() * 7 +
                         static_cast<std::size_t>(i.capacity));
    const double iteration_s = judge(i.plan, model, c, roofline{}).evaluation.latency.value();
    if (!(iteration_s > 0)) return;
    const adapt::timeline t = changes(random, c, iteration_s, 12, 25, ties);
    std::vector<turn> turns{{0, i.plan}};
    plan alone = plan_of_one_device(i, random);
    const bool comparable = judge(alone, model, c, roofline{}).evaluation.latency.value() > iteration_s / 20;
    if (!ties && comparable && random.chance(0.5)) {
      const double first = t.duration.value() * random.unit();
      turns.push_back({first, std::move(alone)});
      if (random.chance(0.5)) turns.push_back({first + (t.duration.value() - first) * random.unit(), i.plan});
    }
    const planning_problem problem{model, c, roofline{}, job{.workload = i.plan.workload, .batch = static_cast<int>(i.plan.batch())}};
    by_the_clock policy{turns};
    const adapt::history h = adapt::run(problem, t, policy, adapt::run_options<adapt::immediate>{});
    const told naive = naive_run(model, c, t, turns).run();
    require_same(from_history(h), naive, t.duration.value());
    CHECK(h.iterations == static_cast<long long>(naive.ends_s.size()));
    iterations += h.iterations;
    cut_off += h.cut_off;
  });
  return {iterations, cut_off};
}

}  // namespace

TEST_CASE("a run is what judging every iteration with all events of the timeline says", "[long]") {
  const auto [iterations, cut_off] = compare(150, false);
  CHECK(iterations > 1000);
  CHECK(cut_off > 50);
}

TEST_CASE("so it is where everything happens at the end of an iteration, and then nothing is cut off", "[long]") {
  const auto [iterations, cut_off] = compare(150, true);
  CHECK(iterations > 500);
  CHECK(cut_off == 0);
}
