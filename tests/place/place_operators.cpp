// SPDX-License-Identifier: BSL-1.0
// Placements of operators: loads by hand, all placements of small workloads, the published workloads and their optima.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/dnn_partitioning_json.hpp>
#include <hetplan/place/place_operators.hpp>

#include "support/by_hand.hpp"
#include "support/message_of.hpp"
#include "support/random_source.hpp"
#include "support/shared_data.hpp"

namespace test_place_operators {

using namespace hetplan;
using namespace hetplan::place;
using test::near;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
using places = std::vector<std::size_t>;

placed_operator op(double accelerator_s, double cpu_s, double transfer_s = 0, double size = 0) {
  return {.accelerator_time = seconds(accelerator_s), .cpu_time = seconds(cpu_s), .size = bytes(size), .transfer = seconds(transfer_s)};
}

std::vector<double> loads(const placement_workload& w, const places& device) {
  std::vector<double> all;
  for (const seconds s : device_loads(w, device)) all.push_back(s.value());
  return all;
}

/// Returns the least maximum load over all placements that keep the rules.
double brute_force(const placement_workload& w) {
  const auto devices = static_cast<std::size_t>(w.accelerators + w.cpus);
  places device(w.operators.size(), 0);
  double best = inf;
  const std::function<void(std::size_t)> go = [&](std::size_t i) {
    if (i < device.size()) {
      for (device[i] = 0; device[i] < devices; ++device[i]) go(i + 1);
      return;
    }
    const auto load = loads(w, device);
    const double worst = *std::max_element(load.begin(), load.end());
    if (worst < best && !find_broken_rule(w, device)) best = worst;
  };
  go(0);
  return best;
}

/// Returns a random workload, partly with colors. In training, each forward operator has a backward one of its color; edges are reversed.
placement_workload random_workload(test::random_source& random) {
  placement_workload w;
  w.accelerators = random.integer(0, 3);
  w.cpus = random.integer(w.accelerators == 0 ? 1 : 0, 4 - std::max(1, w.accelerators));
  const bool training = random.chance(0.4);
  const int forward = random.integer(2, training ? 3 : 6);
  const double free = random.chance(0.5) ? 0.5 : 0.1, density = random.between(0.2, 0.8);
  for (int i = 0; i < forward; ++i) {
    placed_operator o = random.chance(free) ? op(0, 0) : op(random.integer(0, 9), random.integer(0, 30));
    o.transfer = seconds(random.integer(0, 4));
    o.size = bytes(random.integer(0, 5));
    o.on_accelerator = random.chance(0.9);
    if (training) o.color = i;
    else if (random.chance(0.3)) o.color = 100 + random.integer(0, 1);
    w.operators.push_back(o);
  }
  for (int i = 0; i < (training ? forward : 0); ++i) {
    placed_operator o = random.chance(free) ? op(0, 0) : op(random.integer(0, 9), random.integer(0, 30));
    o.transfer = seconds(random.integer(0, 4));
    o.backward = true;
    o.color = i;
    w.operators.push_back(o);
  }
  const auto n = static_cast<std::size_t>(forward);
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n; ++b) {
      if (!random.chance(density)) continue;
      w.edges.emplace_back(a, b);
      if (training) w.edges.emplace_back(n + b, n + a);
    }
    if (training && random.chance(0.5)) w.edges.emplace_back(a, n + a);
    if (training && random.chance(0.2)) w.edges.emplace_back(a, n + random.index(n));
  }
  double total = 0;
  for (const placed_operator& o : w.operators) total += o.size.value();
  if (random.chance(0.6)) w.accelerator_memory = bytes(std::floor(total * random.between(0.3, 1.1)));
  return w;
}

struct published {
  const char* file;
  const char* optimum;  ///< ms, as printed in the published table
};
// ../shared/reference/planners.md, "dnn-partitioning", column "exact"; for inceptionv3, which did not finish, column "linearised".
constexpr published quick[] = {{"LayerGraphs/bert24_inference", "17.7899"},      {"LayerGraphs/bert24_training", "41.7458"},
                               {"LayerGraphs/resnet50_inference", "33.7747"},    {"LayerGraphs/resnet50_training", "78.6318"},
                               {"OperatorGraphs/resnet50_inference", "124.349"}, {"LayerGraphs/inceptionv3_inference", "51.5519"},
                               {"OperatorGraphs/bert_l-3_inference", "27.9186"}, {"OperatorGraphs/bert_l-6_inference", "29.5795"}};
constexpr published slow[] = {{"LayerGraphs/gnmt_training", "107.004"},
                              {"OperatorGraphs/bert_l-3_training", "65.3031"},
                              {"OperatorGraphs/bert_l-6_training", "72.865"},
                              {"OperatorGraphs/bert_L-12_training", "437.998"}};

const std::string folder = HETPLAN_SHARED_DIR "/data/dnn-partitioning";

bool is_here() { return test::shared_data("data/dnn-partitioning").has_value(); }
exchange::dnn_partitioning_workload published_workload(const std::string& file) {
  return exchange::read_dnn_partitioning(io::json_document::load(folder + "/throughput-inputs/" + file + ".json"));
}
std::string as_printed(seconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", 1e3 * time.value());
  return text;
}

void check_published(const published& p) {
  INFO(p.file);
  const placement_workload w = published_workload(p.file).workload;
  const operator_placement found = place_operators(w);
  CHECK(found.status.ok());
  CHECK(as_printed(found.value) == p.optimum);
  CHECK(found.gap() == 0);
  REQUIRE(found.device.size() == w.operators.size());
  CHECK(find_broken_rule(w, found.device) == std::nullopt);
  CHECK(*std::max_element(found.loads.begin(), found.loads.end()) == found.value);
  CHECK(device_loads(w, found.device) == found.loads);
  // The backward parts are contiguous, too: the flow between devices has no cycle.
  std::vector<std::pair<std::size_t, std::size_t>> flows;
  for (const auto& [from, to] : w.edges) {
    if (w.operators[from].backward && found.device[from] != found.device[to]) flows.emplace_back(found.device[from], found.device[to]);
  }
  CHECK(topological_order(found.loads.size(), flows).size() == found.loads.size());

  const operator_placement in_line = place_operators_in_line(w);
  CHECK(in_line.value >= found.value * (1 - 1e-12));
  CHECK(in_line.bound <= found.value * (1 + 1e-12));
  CHECK(find_broken_rule(w, in_line.device) == std::nullopt);
}

}  // namespace

TEST_CASE("an accelerator pays once for each tensor that it brings in or out, a CPU for none") {
  placement_workload w{.operators = {op(1, 10, 0.5), op(2, 20, 0.25), op(3, 30, 0.125), op(4, 40), op(5, 50)},
                       .edges = {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}},
                       .accelerators = 3,
                       .cpus = 2};
  using values = std::vector<double>;
  CHECK(loads(w, {0, 0, 0, 0, 0}) == values{15, 0, 0, 0, 0});
  CHECK(loads(w, {0, 1, 1, 2, 1}) == values{1.5, 10.5, 4.5, 0, 0});       // 0 leaves once and arrives twice
  CHECK(loads(w, {0, 1, 2, 0, 0}) == values{10.875, 2.75, 3.625, 0, 0});  // the outputs of 1 and 2 return
  CHECK(loads(w, {3, 1, 1, 4, 1}) == values{0, 10.5, 0, 10, 40});         // CPUs pay for no transfers
  CHECK(loads(w, {0, 3, 3, 3, 4}) == values{1.5, 0, 0, 90, 50});
  w.edges.emplace_back(0, 1);  // a duplicate edge carries one tensor
  CHECK(loads(w, {0, 1, 1, 2, 1}) == values{1.5, 10.5, 4.5, 0, 0});
}

TEST_CASE("each rule of a placement is named when it is broken") {
  placement_workload w{
      .operators = {op(1, 1, 0, 5), op(1, 1, 0, 5), op(1, 1, 0, 5)}, .edges = {{0, 1}, {1, 2}}, .accelerators = 2, .cpus = 1};
  const auto broken = [&](const places& device) { return find_broken_rule(w, device).value_or("none"); };
  CHECK(broken({0, 0, 1}) == "none");
  CHECK(broken({0, 1, 0}) == "devices 0 and 1 feed each other");
  w.accelerator_memory = bytes(9);
  CHECK(broken({0, 0, 1}) == "accelerator 0 takes 10 bytes of 9");
  CHECK(broken({0, 2, 2}) == "none");
  w.operators[1].on_accelerator = false;
  CHECK(broken({0, 1, 2}) == "operator 1 is on an accelerator, which cannot run it");
  w.operators[0].color = w.operators[2].color = 7;
  CHECK(broken({0, 2, 1}) == "operators 0 and 2 have color 7 and are on two devices");
  // A ring of three devices breaks the rule in the forward part only.
  placement_workload ring{.operators = std::vector<placed_operator>(6, op(1, 1)), .edges = {{0, 1}, {2, 3}, {4, 5}}, .accelerators = 3};
  CHECK(find_broken_rule(ring, places{0, 1, 1, 2, 2, 0}).has_value());
  for (placed_operator& o : ring.operators) o.backward = true;
  CHECK(!find_broken_rule(ring, places{0, 1, 1, 2, 2, 0}));
}

TEST_CASE("operators are placed as well as by trying every placement") {
  const std::uint64_t seed = test::first_seed();
  int proven = 0, infeasible = 0, merged = 0, open = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    INFO("seed " << seed << ", workload " << i);
    test::random_source random(seed * 1000 + i);
    const placement_workload w = random_workload(random);
    const double best = brute_force(w);
    const operator_placement found = place_operators(w);
    const placement_units units = make_placement_units(w);
    merged += units.size() < w.operators.size();
    CHECK(found.value.value() >= best * (1 - 1e-12));
    CHECK(found.bound.value() <= best * (1 + 1e-12));
    if (!units.leaves_take_memory) {
      CHECK(found.status.result == (best == inf ? outcome::infeasible : outcome::feasible));
      CHECK(found.gap() == 0);
    }
    infeasible += best == inf;
    if (!found.status.ok()) {
      CHECK(found.device.empty());
      continue;
    }
    CHECK(find_broken_rule(w, found.device) == std::nullopt);
    if (found.gap() < 1e-12) {
      ++proven;
      CHECK(found.value.value() == near(best));
    } else {
      ++open;
    }
    const operator_placement in_line = place_operators_in_line(w);
    CHECK(in_line.value.value() >= best * (1 - 1e-12));
    CHECK(in_line.bound.value() <= best * (1 + 1e-12));
    if (in_line.status.ok()) CHECK(find_broken_rule(w, in_line.device) == std::nullopt);
    const operator_placement stopped = place_operators(w, {.max_ideals = 1});
    CHECK(stopped.status.result == (in_line.status.ok() ? outcome::stopped : in_line.status.result));
    CHECK(stopped.device == in_line.device);
    CHECK(stopped.bound == in_line.bound);
  }
  INFO("proven " << proven << ", infeasible " << infeasible << ", merged " << merged << ", open " << open);
  CHECK(proven > 250);
  CHECK(infeasible > 20);
  CHECK(merged > 200);
}

TEST_CASE("the cheapest part around each unit is the least load of all sets that hold it") {
  const std::uint64_t seed = test::first_seed();
  int above_work = 0;
  for (std::uint64_t i = 0; i < 150; ++i) {
    INFO("seed " << seed << ", workload " << i);
    test::random_source random(seed * 4000 + i);
    placement_workload w = random_workload(random);
    const placement_units units = make_placement_units(w);
    const int accelerators = w.accelerators, cpus = w.cpus;
    w.accelerators = 2;
    w.accelerator_memory = bytes(inf);
    double expected = 0, heaviest = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
      double least = inf;
      for (std::uint32_t set = 0; accelerators > 0 && set < 1U << units.size(); ++set) {
        if ((set >> u & 1U) == 0) continue;
        places device;
        bool runs = true;
        for (std::size_t o = 0; o < w.operators.size(); ++o) {
          const bool inside = (set >> units.unit_of[o] & 1U) != 0;
          device.push_back(inside ? 0 : 1);
          runs = runs && (!inside || w.operators[o].on_accelerator);
        }
        if (runs) least = std::min(least, loads(w, device)[0]);
      }
      if (cpus > 0) least = std::min(least, units.cpu_s[u]);
      expected = std::max(expected, least);
      heaviest = std::max(heaviest, std::min(cpus > 0 ? units.cpu_s[u] : inf, accelerators > 0 ? units.accelerator_s[u] : inf));
    }
    above_work += expected > heaviest;
    CHECK(cheapest_part_bound(units, accelerators, cpus) == near(expected));
  }
  CHECK(above_work > 20);
}

TEST_CASE("the largest flow is the smallest cut of all") {
  // The shortest path 0 1 2 7 blocks two longer ones, so the search must undo it.
  place::detail::flow_network crossing(8);
  for (const auto& [a, b] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 2}, {2, 7}, {0, 3}, {3, 4}, {4, 2}, {1, 5}, {5, 6}, {6, 7}}) {
    crossing.add_edge(a, b, 1);
  }
  CHECK(crossing.maximum_flow(0, 7) == 2);
  const std::uint64_t seed = test::first_seed();
  for (std::uint64_t i = 0; i < 100; ++i) {
    INFO("seed " << seed << ", network " << i);
    test::random_source random(seed * 900 + i);
    const auto n = static_cast<std::size_t>(random.integer(2, 9));
    std::vector<std::vector<double>> capacity(n, std::vector<double>(n, 0));
    place::detail::flow_network network(n);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (a == b || !random.chance(0.4)) continue;
        capacity[a][b] = random.integer(0, 9);
        network.add_edge(a, b, capacity[a][b]);
      }
    }
    double smallest = inf;
    for (std::uint32_t set = 1; set < 1U << n; set += 2) {
      if ((set >> (n - 1) & 1U) != 0) continue;  // node 0 is the source, the last one the sink
      double cut = 0;
      for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = 0; b < n; ++b) cut += (set >> a & 1U) != 0 && (set >> b & 1U) == 0 ? capacity[a][b] : 0;
      }
      smallest = std::min(smallest, cut);
    }
    CHECK(network.maximum_flow(0, n - 1) == smallest);
    CHECK(network.maximum_flow(0, n - 1) == smallest);  // the network can be reused
  }
}

TEST_CASE("what is always together is one unit: colors, circles of colors, leaves that cost nothing") {
  // In 0 -> 1 -> 2, operators 0 and 2 share a color, so operator 1 joins their unit.
  placement_workload w{.operators = {op(1, 1), op(1, 1), op(1, 1), op(1, 1)}, .edges = {{0, 1}, {1, 2}, {2, 3}}, .accelerators = 2};
  CHECK(make_placement_units(w).size() == 4);
  w.operators[0].color = w.operators[2].color = 5;
  const placement_units caught = make_placement_units(w);
  CHECK(caught.unit_of == places{0, 0, 0, 1});
  CHECK(caught.accelerator_s == std::vector<double>{3, 1});

  // A weight without work joins its only reader.
  w = {.operators = {op(0, 0, 2), op(1, 1, 1), op(1, 1)}, .edges = {{0, 1}, {1, 2}}, .accelerators = 2};
  CHECK(make_placement_units(w).unit_of == places{0, 0, 1});
  CHECK(!make_placement_units(w).leaves_take_memory);
  w.edges.emplace_back(0, 2);
  CHECK(make_placement_units(w).size() == 3);
  // A leaf does not join its producer if a backward operator of another unit reads its output.
  placement_workload stash{
      .operators = {op(5, 50, 1), op(0, 0, 3), op(5, 50), op(1, 10)}, .edges = {{0, 1}, {0, 2}, {1, 3}}, .accelerators = 2};
  stash.operators[3].backward = true;
  stash.operators[2].color = stash.operators[3].color = 1;
  CHECK(make_placement_units(stash).unit_of == places{0, 1, 2, 2});
  CHECK(place_operators(stash).value.value() == 7);  // devices 0 | 1 2 3
  // A chain of leaves becomes one unit, from its end.
  w = {.operators = {op(0, 0, 1), op(0, 0, 1), op(0, 0, 1), op(1, 1)}, .edges = {{0, 1}, {1, 2}, {2, 3}}, .accelerators = 2};
  CHECK(make_placement_units(w).size() == 1);
}

TEST_CASE("merged leaves that take memory leave a gap instead of a false proof") {
  // Leaf 0 does not fit beside operator 1 on an accelerator, but fits on another device.
  placement_workload w{.operators = {op(0, 0, 1, 6), op(5, 50, 1, 6), op(5, 50, 1, 4)},
                       .edges = {{0, 1}, {1, 2}},
                       .accelerators = 3,
                       .accelerator_memory = bytes(10)};
  CHECK(make_placement_units(w).leaves_take_memory);
  CHECK(brute_force(w) == 7);  // leaf alone: 1; operator 1: 5 + 1 + 1
  const operator_placement found = place_operators(w);
  CHECK(found.status.result == outcome::none_found);
  CHECK(found.bound.value() == 6);  // without the memory limit
  CHECK(found.status.reason ==
        "no contiguous partition fits the devices; operators without work were kept with their only neighbour, which takes memory");
  w.accelerator_memory = bytes(12);
  const operator_placement fits = place_operators(w);
  CHECK(make_placement_units(w).leaves_take_memory);
  CHECK(fits.value.value() == 6);
  CHECK(fits.gap() == 0);
}

TEST_CASE("backward operators without a forward partner keep their place in the backward order") {
  // Forward 0 -> 1 -> 2, backward 5 -> 4 -> 3; 3 and 5 have the colors of 0 and 2. Operator 4 has none and lies between 0 and 2, as 1 does.
  placement_workload w{.operators = {op(4, 40), op(4, 40), op(4, 40), op(4, 40), op(4, 40), op(4, 40)},
                       .edges = {{0, 1}, {1, 2}, {5, 4}, {4, 3}},
                       .accelerators = 3};
  for (std::size_t i = 3; i < 6; ++i) w.operators[i].backward = true;
  w.operators[0].color = w.operators[3].color = 0;
  w.operators[2].color = w.operators[5].color = 2;
  const placement_units units = make_placement_units(w);
  CHECK(units.size() == 4);
  const auto edge = [&](std::size_t a, std::size_t b) {
    return std::count(units.edges.begin(), units.edges.end(), std::pair(units.unit_of[a], units.unit_of[b])) == 1;
  };
  CHECK(edge(0, 4));
  CHECK(edge(4, 2));
  CHECK(place_operators(w).value.value() == 8);
  // A backward edge between operators with forward partners adds nothing to the edges of the partners.
  w.operators[1].color = w.operators[4].color = 1;
  CHECK(make_placement_units(w).edges.size() == 2);
}

TEST_CASE("bad workloads are refused before any work") {
  const auto message = [](const placement_workload& w) -> std::string { return test::message_of([&] { return place_operators(w); }); };
  const placement_workload good{.operators = {op(1, 1), op(1, 1)}, .edges = {{0, 1}}, .accelerators = 1};
  CHECK(message(good) == "no error");
  placement_workload w;
  CHECK(message(w) == "placement workload: no operator; expected at least one");
  w = good, w.accelerators = 0;
  CHECK(message(w) == "placement workload: no accelerator and no CPU; expected at least one device");
  w = good, w.cpus = -1;
  CHECK(message(w) == "placement workload: cpus = -1; expected from 0 to 65536");
  w = good, w.accelerators = -1;
  CHECK(message(w) == "placement workload: accelerators = -1; expected from 0 to 65536");
  w = good, w.operators[1].cpu_time = seconds(-2);
  CHECK(message(w) == "placement workload: operator 1: cpu_time = -2; expected finite >= 0");
  w = good, w.operators[0].size = bytes(inf);
  CHECK(message(w) == "placement workload: operator 0: size = inf; expected finite >= 0");
  w = good, w.accelerator_memory = bytes(std::nan(""));
  CHECK(message(w) == "placement workload: accelerator_memory = nan; expected >= 0");
  w = good, w.edges.emplace_back(1, 0);
  CHECK(message(w).ends_with(" is on a cycle; expected a graph without"));
  w = good, w.edges.emplace_back(1, 2);
  CHECK(message(w) == "placement workload: edge 1 -> 2; expected operators below 2");
  w = good, w.operators[0].backward = true;
  CHECK(message(w) == "placement workload: edge 0 -> 1 leads from a backward to a forward operator");
  const auto of_devices = [&](const places& device) -> std::string { return test::message_of([&] { return device_loads(good, device); }); };
  CHECK(of_devices({0}) == "device_loads: 1 devices; expected one for each of 2 operators");
  CHECK(of_devices({0, 1}) == "device_loads: operator 1: device 1; expected below 1");
}

TEST_CASE("the published workloads are placed at their known optima") {
  if (!is_here()) return;
  for (const published& p : quick) check_published(p);
}

TEST_CASE("the published training workloads are placed at their known optima", "[long]") {
  if (!is_here()) return;
  for (const published& p : slow) check_published(p);
}

TEST_CASE("the experts' splits have the published loads") {
  if (!is_here()) return;
  struct row {
    const char* workload;
    const char* split;
    double load_ms;  // ../shared/reference/planners.md, "human expert"
  };
  for (const row& r : {row{"bert24_inference", "bert24_inference", 20.084}, row{"bert24_training", "bert24_training", 49.405},
                       row{"bert24_training", "bert24_inference", 49.405}, row{"gnmt_training", "gnmt_training", 137.154},
                       row{"gnmt_training", "gnmt_inference", 137.154}, row{"resnet50_inference", "resnet50_inference", 43.918},
                       row{"resnet50_training", "resnet50_inference", 112.108}}) {
    INFO(r.workload << ", split of " << r.split);
    const auto w = published_workload(std::string("LayerGraphs/") + r.workload);
    const places device =
        exchange::read_dnn_partitioning_split(io::json_document::load(folder + "/human-experts/" + r.split + "_expert.json"), w);
    const auto load = loads(w.workload, device);
    CHECK(1e3 * *std::max_element(load.begin(), load.end()) == Approx(r.load_ms).margin(0.0005).epsilon(0));
    CHECK(find_broken_rule(w.workload, device) == std::nullopt);
  }
}

}  // namespace test_place_operators
