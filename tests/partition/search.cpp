// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/validate.hpp>

#include "support/search_instance.hpp"

namespace test_search {

using namespace hetplan;
using namespace hetplan::partition;

namespace {

test::search_instance sized_instance(std::uint64_t seed, int layers, int devices, bool chain, bool tight = true) {
  test::random_source random(seed * 6151 + 3);
  planning_graph model = test::detail::random_model(random, layers, chain);
  cluster c = test::detail::random_cluster(random, devices, model, {.tight = tight});
  const workload drawn{.mode = random.pick(std::vector{mode::training, mode::training, mode::inference, mode::generation})};
  plan blank = test::random_blank(random, drawn, 4, 8);
  layer_sequence sequence = decompose::serial(model);
  return {std::move(model), std::move(sequence), std::move(c), std::move(blank),
          "sized_instance(" + std::to_string(seed) + ", " + std::to_string(layers) + ", " + std::to_string(devices) + ")"};
}

Approx near(double x) { return Approx(x).epsilon(1e-9).margin(1e-12); }

std::string key(const plan& p) {
  std::string text;
  for (const stage& s : p.stages) {
    for (const layer_id l : s.layers) text += std::to_string(l.value) + "-";
    for (const assignment& a : s.devices)
      text += std::to_string(a.device.value) + "*" + std::to_string(a.samples) + "/" + std::to_string(a.tensor_parallel) + "+";
    text += " ";
  }
  return text;
}

std::vector<double> scores_of(const search_result& r) {
  std::vector<double> all;
  for (const found_plan& f : r.plans) all.push_back(f.score);
  return all;
}

/// Checks the invariants of an answer: plans are valid, distinct, sorted, within limits, and cost what estimate() says.
template <class Objective>
void check_answer(const search_result& r, const test::search_instance& i, const Objective& o, const search_options& options) {
  REQUIRE((r.status.result == outcome::none_found) == r.plans.empty());
  REQUIRE(r.status.reason.empty() == r.status.ok());
  REQUIRE(r.plans.size() <= static_cast<std::size_t>(options.plans));
  std::set<std::string> different;
  for (std::size_t n = 0; n < r.plans.size(); ++n) {
    const found_plan& f = r.plans[n];
    INFO("plan " << n << ": " << key(f.plan));
    const auto wrong = validate(f.plan, i.model, i.cluster);
    INFO((wrong ? wrong->where + ": " + wrong->what : "valid"));
    REQUIRE_FALSE(wrong);
    REQUIRE(different.insert(key(f.plan)).second);
    REQUIRE(f.plan.stages.size() <= static_cast<std::size_t>(options.max_stages));
    if (n > 0) REQUIRE(std::pair(r.plans[n - 1].score, r.plans[n - 1].plan.stages.size()) <= std::pair(f.score, f.plan.stages.size()));
    const evaluation e = estimate(f.plan, i.model, i.cluster, roofline{});
    REQUIRE_FALSE(find_broken_limit(e, i.cluster));
    REQUIRE(f.estimate.response().value() == near(e.response().value()));
    REQUIRE(f.estimate.latency.value() == near(e.latency.value()));
    REQUIRE(f.estimate.energy().value() == near(e.energy().value()));
    REQUIRE(f.estimate.peak_memory().value() == near(e.peak_memory().value()));
    REQUIRE(f.score == near(score(o, e)));
  }
}

/// Enumerates all plans of a device space from the tail; it shares only moves and classes with the search.
class enumerator {
 public:
  enumerator(const test::search_instance& i, const device_space& space, const search_options& options)
      : i_(i), space_(space), options_(options) {}

  template <class Objective>
  std::vector<double> scores(const Objective& o) {
    std::vector<double> all;
    visit_ = [&](const plan& p) {
      const evaluation e = estimate(p, i_.model, i_.cluster, roofline{});
      if (is_finite(e.latency) && !find_broken_limit(e, i_.cluster)) all.push_back(score(o, e));
    };
    from(i_.sequence.size(), 0);
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  struct choice {
    std::size_t first, last, group;
  };

  /// Extends the partial plan `chosen_`, tail first; blocks [end, size) are placed.
  void from(std::size_t end, std::size_t state) {
    if (end == 0) return complete();
    if (chosen_.size() == static_cast<std::size_t>(options_.max_stages)) return;
    for (std::size_t first = 0; first < end; ++first) {
      if (!i_.sequence.is_stage(first, end)) continue;
      for (const device_space::move& m : space_.moves[state]) {
        chosen_.push_back({first, end, m.group});
        from(first, m.to);
        chosen_.pop_back();
      }
    }
  }
  void complete() {
    plan p = i_.blank;
    for (std::size_t s = chosen_.size(); s-- > 0;) {
      stage st{.name = "s" + std::to_string(p.stages.size())};
      for (std::size_t b = chosen_[s].first; b < chosen_[s].last; ++b)
        st.layers.insert(st.layers.end(), i_.sequence.blocks[b].begin(), i_.sequence.blocks[b].end());
      p.stages.push_back(std::move(st));
    }
    const bool training = p.workload.mode == mode::training, gpipe = p.schedule.kind == schedule_kind::gpipe;
    const stage_graph g = make_stage_graph(p, i_.model);
    std::map<std::size_t, std::size_t> used;  // devices taken of each class
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      const int warmup = warmup_of(options_.warmup, g.nodes[s].depth);
      const int in_flight = !training ? 1 : gpipe ? p.microbatches : std::min(warmup, p.microbatches);
      if (!share(p, s, space_.groups[chosen_[p.stages.size() - 1 - s].group], in_flight, used)) return;
      if (training && !gpipe) p.schedule.warmup.push_back(warmup);
    }
    visit_(p);
  }
  /// Allots the samples one by one to the device that finishes first within its memory, by definition and without tables.
  bool share(plan& p, std::size_t s, const device_space::device_group& group, int in_flight,
             std::map<std::size_t, std::size_t>& used) const {
    std::vector<device_id> members;
    for (const auto& part : group) {
      for (int n = 0; n < part.devices; ++n) members.push_back(space_.classes[part.of_class][used[part.of_class]++]);
    }
    std::vector<int> caps, shares(members.size(), 0);
    for (const device_id d : members) {
      int cap = 0;
      for (int x = 1; x <= p.microbatch_size; ++x) {
        const double held = stage_static_bytes(plain_memory{}, i_.model, p.stages[s], {d, x}, p.workload, p.microbatches) +
                            in_flight * stage_share_memory(plain_memory{}, i_.model, p.stages[s], {d, x}, p.workload, 0).forward;
        if (held <= i_.cluster[d].usable_memory().value() * (1 + limit_tolerance)) cap = x;
      }
      caps.push_back(cap);
    }
    for (int sample = 0; sample < p.microbatch_size; ++sample) {
      std::size_t best = members.size();
      double least = 0;
      for (std::size_t m = 0; m < members.size(); ++m) {
        if (shares[m] == caps[m]) continue;
        const double t = fastest(p, s, members[m], shares[m] + 1).first;
        if (best == members.size() || t < least || (t == least && shares[m] < shares[best])) {
          best = m;
          least = t;
        }
      }
      if (best == members.size()) return false;
      ++shares[best];
    }
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (shares[m] == 0) return false;
      p.stages[s].devices.push_back({members[m], shares[m], fastest(p, s, members[m], shares[m]).second});
    }
    return true;
  }
  [[nodiscard]] std::pair<double, int> fastest(const plan& p, std::size_t s, device_id d, int samples) const {
    std::pair<double, int> best{0, 0};
    for (int degree = 1; degree <= (i_.cluster[d].interconnect ? i_.cluster[d].accelerators : 1); ++degree) {
      double total = 0;
      for (const layer_id l : p.stages[s].layers) {
        for (const phase ph : {phase::forward, phase::backward_input, phase::backward_weight}) {
          if (ph != phase::forward && p.workload.mode != mode::training) continue;
          total += roofline{}
                       .time({.layer = i_.model[l],
                              .phase = ph,
                              .batch = static_cast<double>(samples),
                              .tensor_parallel = degree,
                              .context = p.workload.context},
                             i_.cluster[d])
                       .value();
        }
      }
      if (best.second == 0 || total < best.first * (1 - 1e-12)) best = {total, degree};
    }
    // A task each way, and what it sends: to the next stage, back, and tokens from the last stage of several.
    const bool training = p.workload.mode == mode::training, last = s + 1 == p.stages.size();
    int sends = last ? 0 : 1;
    if (s > 0 && (training || (last && p.workload.mode == mode::generation && p.workload.tokens > 1))) ++sends;
    best.first += (training ? 2 : 1) * i_.cluster[d].overhead.value() + sends * i_.cluster[d].send_overhead.value();
    return best;
  }

  const test::search_instance& i_;
  const device_space& space_;
  const search_options& options_;
  std::vector<choice> chosen_;
  std::function<void(const plan&)> visit_;
};

/// Compares the search with enumeration: dominance for the best plan, the exhaustive policy for the whole list.
template <class Objective>
bool compare_with_all(const test::search_instance& i, const search_tables& t, const device_space& space, const Objective& o,
                      warmup_rule rule, int max_stages) {
  search_options options{.plans = 1, .max_stages = max_stages, .warmup = rule, .coarse_boundaries = 2};
  const std::vector<double> all = enumerator(i, space, options).scores(o);
  const search_result found = two_substate_dp(t, space, i.blank, o, dominance{}, options);
  check_answer(found, i, o, options);
  REQUIRE(found.plans.empty() == all.empty());
  if (!all.empty()) REQUIRE(found.plans.front().score == near(all.front()));
  options.plans = 20;
  options.prune = false;
  const search_result listed = two_substate_dp(t, space, i.blank, o, exhaustive{}, options);
  check_answer(listed, i, o, options);
  REQUIRE(listed.plans.size() == std::min<std::size_t>(20, all.size()));
  for (std::size_t n = 0; n < listed.plans.size(); ++n) REQUIRE(listed.plans[n].score == near(all[n]));
  options.prune = true;
  const search_result pruned = two_substate_dp(t, space, i.blank, o, exhaustive{}, options);
  check_answer(pruned, i, o, options);
  REQUIRE(pruned.plans.size() == listed.plans.size());
  for (std::size_t n = 0; n < listed.plans.size(); ++n) REQUIRE(pruned.plans[n].score == near(all[n]));
  return !all.empty();
}

template <class F>
void with_objective(std::uint64_t which, F&& f) {
  switch (which % 4) {
    case 0: f(minimize_latency{}); break;
    case 1: f(minimize_energy{}); break;
    case 2: f(keep_qoe{seconds(0.05), 20}); break;
    default: f(maximize_throughput{4}); break;
  }
}

}  // namespace

TEST_CASE("in a class order, dominance finds the best and exhaustion lists all plans of a walk over the space's moves") {
  int feasible = 0, limited = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 400; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 5, .most_devices = 4});
    INFO(i.what);
    const search_tables t = test::tables_of(i);
    std::vector<std::size_t> order(t.classes.size());
    for (std::size_t c = 0; c < order.size(); ++c) order[c] = c;
    test::random_source random(seed);
    random.shuffle(order);
    const device_space space = in_class_order(t.classes, order, i.blank.microbatch_size);
    const int max_stages = seed % 5 == 0 ? 2 : 16;
    limited += max_stages == 2 ? 1 : 0;
    with_objective(seed, [&](const auto& o) { feasible += compare_with_all(i, t, space, o, warmup_rules[seed % 3], max_stages) ? 1 : 0; });
  }
  REQUIRE(feasible > 200);
  REQUIRE(limited > 0);
}

TEST_CASE("over every order, dominance finds the best and exhaustion lists all plans of a walk over the space's moves") {
  int feasible = 0;
  for (std::uint64_t seed = test::first_seed() + 5000; seed < test::first_seed() + 5200; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 4, .most_devices = 3});
    INFO(i.what);
    const search_tables t = test::tables_of(i);
    const device_space space = test::any_order(t, i.blank);
    with_objective(
        seed, [&](const auto& o) { feasible += compare_with_all(i, t, space, o, warmup_rules[seed % 3], seed % 2 == 0 ? 2 : 16) ? 1 : 0; });
  }
  REQUIRE(feasible > 100);
}

namespace {

template <class Objective>
void compare_pruned(const test::search_instance& i, const Objective& o, bool any_order, int& feasible, int& cheaper) {
  INFO(i.what);
  const search_tables t = test::tables_of(i);
  std::vector<std::size_t> order(t.classes.size());
  for (std::size_t c = 0; c < order.size(); ++c) order[c] = c;
  const device_space space = any_order ? test::any_order(t, i.blank) : in_class_order(t.classes, order, i.blank.microbatch_size);
  search_options options{.plans = 5, .coarse_boundaries = 3};
  const search_result pruned = two_substate_dp(t, space, i.blank, o, dominance{}, options);
  const search_result again = two_substate_dp(t, space, i.blank, o, dominance{}, options);
  options.prune = false;
  const search_result all = two_substate_dp(t, space, i.blank, o, dominance{}, options);
  check_answer(pruned, i, o, options);
  check_answer(all, i, o, options);
  // With pruning, plans of the coarse runs may join the list, so none of its entries is worse.
  REQUIRE(pruned.plans.size() >= all.plans.size());
  if (!all.plans.empty()) REQUIRE(pruned.plans.front().score == near(all.plans.front().score));
  for (std::size_t n = 0; n < all.plans.size(); ++n) REQUIRE(pruned.plans[n].score <= all.plans[n].score * (1 + 1e-9));
  feasible += all.plans.empty() ? 0 : 1;
  cheaper += pruned.counts.extended < all.counts.extended ? 1 : 0;

  REQUIRE(scores_of(again) == scores_of(pruned));
  REQUIRE(again.counts.extended == pruned.counts.extended);
  REQUIRE(again.counts.kept == pruned.counts.kept);
  for (std::size_t n = 0; n < pruned.plans.size(); ++n) {
    REQUIRE(again.plans[n].plan == pruned.plans[n].plan);
    REQUIRE(again.plans[n].estimate == pruned.plans[n].estimate);
  }
}

}  // namespace

TEST_CASE("pruning and coarse runs lose nothing on longer chains, and the same question has the same answer", "[long]") {
  int feasible = 0, cheaper = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 120; ++seed) {
    const test::search_instance i = sized_instance(seed, 12 + static_cast<int>(seed % 3) * 4, seed % 2 == 0 ? 6 : 4, true);
    with_objective(seed, [&](const auto& o) { compare_pruned(i, o, true, feasible, cheaper); });
  }
  REQUIRE(feasible > 40);
  REQUIRE(cheaper > 40);
}

TEST_CASE("pruning and coarse runs lose nothing on a row of many devices", "[long]") {
  int feasible = 0, cheaper = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 120; ++seed) {
    const test::search_instance i = sized_instance(seed + 2000, 12 + static_cast<int>(seed % 3) * 2, 8, true);
    with_objective(seed / 4, [&](const auto& o) { compare_pruned(i, o, false, feasible, cheaper); });
  }
  REQUIRE(feasible > 40);
  REQUIRE(cheaper > 40);
}

TEST_CASE("pruning and coarse runs lose nothing on graphs, and the same question has the same answer") {
  int feasible = 0, cheaper = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 400; ++seed) {
    const test::search_instance i = sized_instance(seed + 1000, 8 + static_cast<int>(seed % 3), seed % 2 == 0 ? 4 : 3, false);
    with_objective(seed, [&](const auto& o) { compare_pruned(i, o, true, feasible, cheaper); });
  }
  REQUIRE(feasible > 150);
  REQUIRE(cheaper > 150);
}

TEST_CASE("K per cell are never better than dominance, and as many as there are lose nothing") {
  int feasible = 0, missed = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 600; ++seed) {
    const test::search_instance i = test::random_search_instance(seed + 20000, {.most_layers = 6, .most_devices = 4});
    INFO(i.what);
    const search_tables t = test::tables_of(i);
    const device_space space = test::any_order(t, i.blank);
    with_objective(seed, [&](const auto& o) {
      search_options options{.plans = 4, .prune = false};
      const search_result all = two_substate_dp(t, space, i.blank, o, exhaustive{}, options);
      const search_result best = two_substate_dp(t, space, i.blank, o, dominance{}, options);
      const search_result wide = two_substate_dp(t, space, i.blank, o, top_k{static_cast<int>(all.counts.kept) + 1}, options);
      check_answer(best, i, o, options);
      REQUIRE(all.plans.size() >= best.plans.size());
      REQUIRE(all.plans.empty() == best.plans.empty());
      REQUIRE(scores_of(wide) == scores_of(best));
      for (std::size_t n = 0; n < wide.plans.size(); ++n) REQUIRE(wide.plans[n].plan == best.plans[n].plan);
      REQUIRE(wide.counts.kept == best.counts.kept);
      REQUIRE(best.counts.kept <= all.counts.kept);
      if (best.plans.empty()) return;
      ++feasible;
      REQUIRE(best.plans.front().score == near(all.plans.front().score));
      for (const int k : {1, 2, 4}) {
        const search_result few = two_substate_dp(t, space, i.blank, o, top_k{k}, options);
        check_answer(few, i, o, options);
        REQUIRE(few.counts.kept <= few.counts.cells * k);
        if (few.plans.empty() || few.plans.front().score > best.plans.front().score * (1 + 1e-9)) ++missed;
        if (!few.plans.empty()) REQUIRE(few.plans.front().score >= best.plans.front().score * (1 - 1e-9));
      }
    });
  }
  REQUIRE(feasible > 300);
  REQUIRE(missed < feasible);  // of three searches per instance
}

TEST_CASE("no plan has more stages than allowed, where warm-up saturates and where nothing tells depths apart", "[long]") {
  int bound = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 120; ++seed) {
    test::search_instance i = sized_instance(seed + 3000, 6, 4, seed % 3 != 0, false);
    i.blank.microbatches = seed % 2 == 0 ? 3 : 40;  // warm-up saturates at 2 stages, or never
    i.blank.workload.mode = std::vector{mode::training, mode::inference, mode::generation, mode::training}[seed % 4];
    i.blank.schedule.kind = seed % 8 < 4 ? schedule_kind::one_f_one_b : schedule_kind::gpipe;
    INFO(i.what);
    const search_tables t = test::tables_of(i);
    const device_space space = test::any_order(t, i.blank);
    std::size_t free_stages = 0;
    for (const int most : {16, 3, 2, 1}) {
      INFO("at most " << most << " stages");
      space_options all;
      all.max_stages = most;
      for (const auto& members : t.classes) all.device_order.insert(all.device_order.end(), members.begin(), members.end());
      const auto best = brute_force(i.sequence, i.model, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank, all,
                                    minimize_latency{}, dominant_step{}, 1);
      const search_options options{.plans = 3, .max_stages = most, .coarse_boundaries = 2};
      const search_result found = two_substate_dp(t, space, i.blank, minimize_latency{}, dominance{}, options);
      check_answer(found, i, minimize_latency{}, options);
      REQUIRE(found.plans.empty() == best.empty());
      if (best.empty()) continue;
      REQUIRE(score(minimize_latency{}, found.plans.front().estimate) == near(best.front().score));
      if (most == 16) free_stages = found.plans.front().plan.stages.size();
      if (static_cast<std::size_t>(most) < free_stages) ++bound;
    }
  }
  REQUIRE(bound > 40);
}

TEST_CASE("a list of plans is that of exhaustion at its head and holds no more than asked for") {
  int longer = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 150; ++seed) {
    const test::search_instance i = test::random_search_instance(seed + 40000, {.most_layers = 5, .most_devices = 3});
    INFO(i.what);
    const search_tables t = test::tables_of(i);
    const device_space space = test::any_order(t, i.blank);
    for (const int plans : {1, 2, 10, 1000}) {
      const search_options options{.plans = plans};
      const search_result found = two_substate_dp(t, space, i.blank, minimize_latency{}, dominance{}, options);
      const search_result all = two_substate_dp(t, space, i.blank, minimize_latency{}, exhaustive{}, options);
      check_answer(found, i, minimize_latency{}, options);
      check_answer(all, i, minimize_latency{}, options);
      REQUIRE(found.plans.size() <= all.plans.size());
      REQUIRE(found.plans.empty() == all.plans.empty());
      if (found.plans.empty()) continue;
      REQUIRE(found.plans.front().score == near(all.plans.front().score));
      longer += found.plans.size() > 2 ? 1 : 0;
    }
  }
  REQUIRE(longer > 50);
}

TEST_CASE("an observer sees cells from the end of the sequence, each once, sorted, and as many as are counted") {
  int cells = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 100; ++seed) {
    const test::search_instance i = test::random_search_instance(seed + 60000, {.most_layers = 6, .most_devices = 4});
    INFO(i.what);
    const search_tables t = test::tables_of(i);
    long long seen = 0, kept = 0;
    std::size_t last_block = i.sequence.size();
    std::set<std::vector<std::size_t>> once;
    const device_space space = test::any_order(t, i.blank);
    const auto watch = [&](const cell_filled& e) {
      ++seen;
      kept += static_cast<long long>(e.kept.size());
      REQUIRE(e.blocks == i.sequence.size());
      REQUIRE(e.first_block >= 1);
      REQUIRE(e.first_block <= last_block);
      last_block = e.first_block;
      REQUIRE(e.state < space.states());
      REQUIRE(e.stages >= 1);
      REQUIRE(once.insert({e.first_block, e.state, static_cast<std::size_t>(e.stages)}).second);
      REQUIRE_FALSE(e.kept.empty());
      REQUIRE(e.kept.size() <= 3);
      REQUIRE(std::is_sorted(e.kept.begin(), e.kept.end(), [](const partial_plan* a, const partial_plan* b) { return a->rank < b->rank; }));
      for (const partial_plan* p : e.kept) REQUIRE(p->stages >= e.stages);
      return control::go;
    };
    const search_result r = two_substate_dp(t, space, i.blank, minimize_latency{}, top_k{3}, {}, watch);
    REQUIRE(seen == r.counts.cells);
    REQUIRE(kept == r.counts.kept);
    REQUIRE(r.counts.extended >= kept);
    cells += static_cast<int>(seen);
  }
  REQUIRE(cells > 200);
}

TEST_CASE("a search that is stopped says so and returns the best plans of its coarse runs") {
  int known = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 30; ++seed) {
    const test::search_instance i = sized_instance(seed + 7000, 12, 3, true, false);
    INFO(i.what);
    const search_tables t = test::tables_of(i);
    const device_space space = test::any_order(t, i.blank);
    int events = 0;
    const auto stop = [&](const cell_filled&) {
      ++events;
      return control::stop;
    };
    search_options options{.plans = 3, .coarse_boundaries = 3};
    const search_result stopped = two_substate_dp(t, space, i.blank, minimize_latency{}, dominance{}, options, stop);
    if (events == 0) continue;  // a single device has no cells
    CHECK(events == 1);
    CHECK(stopped.status.result == outcome::stopped);
    CHECK_FALSE(stopped.status.reason.empty());
    const search_result whole = two_substate_dp(t, space, i.blank, minimize_latency{}, dominance{}, options);
    REQUIRE_FALSE(whole.plans.empty());
    REQUIRE_FALSE(stopped.plans.empty());  // the coarse runs have plans: every device holds the whole model
    REQUIRE(stopped.plans.front().score >= whole.plans.front().score * (1 - 1e-9));
    for (const found_plan& f : stopped.plans) REQUIRE_FALSE(validate(f.plan, i.model, i.cluster));
    ++known;
    // Without coarse runs, a search that stops at its first cell has complete plans of one stage only.
    options.coarse_boundaries = 0;
    const search_result bare = two_substate_dp(t, space, i.blank, minimize_latency{}, dominance{}, options, stop);
    CHECK(bare.status.result == outcome::stopped);
    for (const found_plan& f : bare.plans) CHECK(f.plan.stages.size() == 1);
  }
  REQUIRE(known > 20);
}

TEST_CASE("coarse runs count against the limit of extensions, and a limit that is kept is not noticed") {
  int stopped = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 30; ++seed) {
    const test::search_instance i = sized_instance(seed + 7000, 12, 3, true, false);
    INFO(i.what);
    const search_tables t = test::tables_of(i);
    const device_space space = test::any_order(t, i.blank);
    const minimize_latency fastest;
    const top_k few_each{3};
    search_options options{.plans = 3, .coarse_boundaries = 3};
    const search_result whole = two_substate_dp(t, space, i.blank, fastest, dominance{}, options);
    const search_result first =
        partition::detail::substate_search(t, space, i.blank, fastest, few_each, options, partition::detail::even_boundaries(t, 3),
                                           std::numeric_limits<double>::infinity())
            .run();
    options.most_extensions = first.counts.extended;
    const search_result nothing_left = two_substate_dp(t, space, i.blank, fastest, dominance{}, options);
    CHECK(nothing_left.counts.extended == first.counts.extended);
    CHECK(nothing_left.counts.cells == 0);
    CHECK(nothing_left.status.result == outcome::stopped);
    CHECK(nothing_left.plans.size() == first.plans.size());
    CHECK(whole.counts.extended > first.counts.extended);
    options.most_extensions = whole.counts.extended + 1;
    const search_result enough = two_substate_dp(t, space, i.blank, fastest, dominance{}, options);
    CHECK(enough.status.ok());
    CHECK(scores_of(enough) == scores_of(whole));
    CHECK(enough.counts.extended == whole.counts.extended);
    ++stopped;
  }
  CHECK(stopped == 30);
}

}  // namespace test_search
