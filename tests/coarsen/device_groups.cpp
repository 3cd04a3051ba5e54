// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/random_source.hpp"

namespace test_device_groups {

using namespace hetplan;
using Catch::Matchers::Contains;
using coarsen::device_groups;
using coarsen::distance_matrix;
using coarsen::group_devices;
using test::first_seed;
using test::random_source;

constexpr double infinite = std::numeric_limits<double>::infinity();
using sets = std::set<std::set<int>>;

sets regions_of(const device_groups& g) {
  sets all;
  for (const auto& r : g.regions) {
    std::set<int> one;
    for (const device_id d : r.devices) one.insert(d.value);
    all.insert(one);
  }
  return all;
}

sets classes_of(const device_groups& g) {
  sets all;
  for (const auto& r : g.regions) {
    for (const auto& c : r.classes) {
      std::set<int> one;
      for (const device_id d : c) one.insert(d.value);
      all.insert(one);
    }
  }
  return all;
}

std::vector<double> alike(const distance_matrix& d) { return std::vector<double>(d.size(), 1.0); }

cluster from_settings(const std::string& name) {
  return io::read_cluster(io::json_document::load(HETPLAN_SOURCE_DIR "/bench/settings/" + name + ".json"));
}

device_groups grouped(const cluster& c, bytes message = 1_MB) { return group_devices(c, message, coarsen::compute_scores(c.devices())); }

/// Returns random distances, with many equal ones if `ties` and some infinite ones if `holes`.
distance_matrix random_distances(random_source& random, int size, bool ties, bool holes) {
  distance_matrix d(static_cast<std::size_t>(size));
  for (std::size_t a = 0; a < d.size(); ++a) {
    for (std::size_t b = a + 1; b < d.size(); ++b) {
      d.set(a, b, holes && random.chance(0.2) ? infinite : ties ? random.integer(1, 4) : random.spread(1, 4));
    }
  }
  return d;
}

struct planted {
  distance_matrix distances;
  sets regions;
};

/// Regions of several scales, one of them a single device. Distances inside a region are within a factor of two; those to another
/// region are more than twice as long as any inside either.
planted plant(random_source& random) {
  const int regions = random.integer(2, 7);
  std::vector<std::size_t> of;
  std::vector<double> scale;
  for (int r = 0; r < regions; ++r) {
    of.insert(of.end(), r == 0 ? 1U : static_cast<std::size_t>(random.integer(2, 8)), static_cast<std::size_t>(r));
    scale.push_back(random.spread(1, 4));
  }
  random.shuffle(of);
  planted p{distance_matrix(of.size()), {}};
  for (std::size_t a = 0; a < of.size(); ++a) {
    for (std::size_t b = a + 1; b < of.size(); ++b) {
      const double far = of[a] == 0 ? scale[of[b]] : of[b] == 0 ? scale[of[a]] : std::max(scale[of[a]], scale[of[b]]);
      p.distances.set(a, b, of[a] == of[b] ? far * random.between(1, 1.99) : 2.01 * 1.99 * far * random.between(1, 10));
    }
  }
  for (std::size_t r = 0; r < scale.size(); ++r) {
    std::set<int> one;
    for (std::size_t d = 0; d < of.size(); ++d) {
      if (of[d] == r) one.insert(static_cast<int>(d));
    }
    p.regions.insert(one);
  }
  return p;
}

/// Average linkage by definition: each mean from all pairs of devices, each step over all pairs of groups.
sets by_definition(const distance_matrix& d, double threshold) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < d.size(); ++i) groups.push_back({i});
  const auto mean = [&](const auto& of, const auto& to, auto counts) {
    std::vector<double> all;
    for (const std::size_t a : of) {
      for (const std::size_t b : to) {
        if (counts(a, b)) all.push_back(d(a, b));
      }
    }
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  };
  const auto inner = [&](const std::vector<std::size_t>& g) {
    if (g.size() > 1) return mean(g, g, [](std::size_t a, std::size_t b) { return a < b; });
    double nearest = infinite;
    for (std::size_t b = 0; b < d.size(); ++b) nearest = b == g[0] ? nearest : std::min(nearest, d(g[0], b));
    return nearest;
  };
  for (;;) {
    std::optional<std::pair<std::size_t, std::size_t>> best;
    double least = infinite;
    for (std::size_t a = 0; a < groups.size(); ++a) {
      for (std::size_t b = a + 1; b < groups.size(); ++b) {
        const double far = mean(groups[a], groups[b], [](std::size_t, std::size_t) { return true; });
        const bool may = far <= (1 + threshold) * std::min(inner(groups[a]), inner(groups[b])) * (1 + 1e-12);
        if (may && far < least * (1 - 1e-12)) {
          least = far;
          best = {a, b};
        }
      }
    }
    if (!best) break;
    auto& first = groups[best->first];
    const auto& second = groups[best->second];
    first.insert(first.end(), second.begin(), second.end());
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(best->second));
  }
  sets all;
  for (const auto& g : groups) all.insert(std::set<int>(g.begin(), g.end()));
  return all;
}

/// Returns the regions without the check for connected regions, which random distances need not pass.
sets regions_by_linkage(const distance_matrix& d, double threshold) {
  coarsen::average_linkage grown(d);
  grown.merge_while([&](double far, double a, double b) { return far <= (1 + threshold) * std::min(a, b) * (1 + 1e-12); });
  sets all;
  for (const auto& g : grown.groups()) all.insert(std::set<int>(g.begin(), g.end()));
  return all;
}

TEST_CASE("regions are those of average linkage by its definition") {
  int several = 0;
  for (auto seed = first_seed(); seed < first_seed() + 300; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    const bool holes = random.chance(0.3);
    const distance_matrix d = random_distances(random, random.integer(1, 14), random.chance(0.4), holes);
    const double threshold = random.between(0, 2);
    const sets expected = by_definition(d, threshold);
    CHECK(regions_by_linkage(d, threshold) == expected);
    if (!holes) CHECK(regions_of(group_devices(d, alike(d), {.network_threshold = threshold})) == expected);
    several += expected.size() > 1 && expected.size() < d.size();
  }
  CHECK(several > 100);
}

TEST_CASE("planted regions are found, one of a single device among them") {
  for (auto seed = first_seed(); seed < first_seed() + 100; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    const planted p = plant(random);
    CHECK(regions_of(group_devices(p.distances, alike(p.distances))) == p.regions);
  }
}

TEST_CASE("two single devices are one region unless something is nearer to each") {
  // {0, 1, 2} and {3, 4} are regions; 5 and 6 are single devices.
  const auto with = [](double between_singles) {
    distance_matrix d(7);
    const auto side = [](std::size_t i) { return i < 3 ? 0 : i < 5 ? 1 : static_cast<int>(i); };
    for (std::size_t a = 0; a < 7; ++a) {
      for (std::size_t b = a + 1; b < 7; ++b) d.set(a, b, side(a) == side(b) ? 1 : 10);
    }
    d.set(5, 6, between_singles);
    return d;
  };
  CHECK(regions_of(group_devices(with(10), alike(with(10)))) == sets{{0, 1, 2}, {3, 4}, {5, 6}});
  CHECK(regions_of(group_devices(with(20), alike(with(20)))) == sets{{0, 1, 2}, {3, 4}, {5, 6}});
  CHECK(regions_of(group_devices(with(20.1), alike(with(20.1)))) == sets{{0, 1, 2}, {3, 4}, {5}, {6}});
}

TEST_CASE("DeepCEE's setting 1 has two regions, setting 2 one, Fig 12a four") {
  std::set<int> cloud, edge, end, all;
  for (int d = 0; d < 22; ++d) (d < 12 ? cloud : d < 18 ? edge : end).insert(d), all.insert(d);
  std::set<int> lan = edge;
  lan.insert(end.begin(), end.end());
  for (const bytes message : {10_kB, 1_MB, 100_MB}) {
    CAPTURE(message.value());
    const device_groups first = grouped(from_settings("deepcee-1"), message);
    CHECK(regions_of(first) == sets{cloud, lan});
    CHECK(classes_of(first) == sets{cloud, edge, end});  // 35.58 and 29.77 TFLOP/s differ too much
    CHECK(first.regions[0].classes.size() == 1);
    const device_groups second = grouped(from_settings("deepcee-2"), message);
    CHECK(regions_of(second) == sets{all});
    CHECK(classes_of(second) == sets{cloud, edge, end});
    CHECK(regions_of(grouped(from_settings("deepcee-four"), message)) == sets{cloud, edge, {18, 19}, {20, 21}});
  }
  CHECK(regions_of(grouped(from_settings("cloud-edge-end"))) == sets{cloud, lan});
  const device_groups g = grouped(from_settings("deepcee-1"));
  CHECK(g.regions[0].inner_s == Approx(0.2e-3 + 8e6 / 1e9));
  CHECK(g.distance_s(0, 1) == Approx(0.2e-3 + 8e6 / 100e6));
  CHECK(g.distance_s(1, 0) == g.distance_s(0, 1));
  CHECK(g.distance_s(1, 1) == g.regions[1].inner_s);
  const device_groups four = grouped(from_settings("deepcee-four"));
  CHECK(four.nearest_region(0) == std::size_t{1});  // all are equally far
  CHECK(four.nearest_region(3) == std::size_t{0});
  CHECK_FALSE(grouped(from_settings("deepcee-2")).nearest_region(0));
}

TEST_CASE("classes as in DeepCEE's Fig 5: all in threes, all alone, a pair and two alone") {
  distance_matrix d(12);
  for (std::size_t a = 0; a < 12; ++a) {
    for (std::size_t b = a + 1; b < 12; ++b) d.set(a, b, a / 4 == b / 4 ? 1 : 8);
  }
  const std::vector<double> scores{1, 1, 2, 3, 1, 2, 4, 8, 5, 5.2, 1, 2};
  const device_groups g = group_devices(d, scores);
  CHECK(regions_of(g) == sets{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}});
  CHECK(classes_of(g) == sets{{0, 1}, {2}, {3}, {4}, {5}, {6}, {7}, {8, 9}, {10}, {11}});
  CHECK(group_devices(d, scores, {.compute_threshold = 0.03}).regions[2].classes.size() == 4);
  CHECK(group_devices(d, scores, {.compute_threshold = 1}).regions[1].classes.size() == 2);  // 1 and 2, 4 and 8
}

TEST_CASE("of ties the pair with the smaller first devices merges first") {
  distance_matrix d(4);
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = a + 1; b < 4; ++b) d.set(a, b, 0.1);
  }
  const device_groups g = group_devices(d, alike(d));
  REQUIRE(g.merges.size() == 3);
  CHECK(g.merges_inside() == 3);
  CHECK((g.merges[0].left == 0 && g.merges[0].right == 1));
  CHECK((g.merges[1].left == 4 && g.merges[1].right == 2));
  CHECK((g.merges[2].left == 5 && g.merges[2].right == 3));
  for (const auto& m : g.merges) CHECK(m.height == Approx(0.1));
  CHECK(g == group_devices(d, alike(d)));
  distance_matrix nothing(3);
  CHECK(group_devices(nothing, alike(nothing)).regions.size() == 1);
}

TEST_CASE("the merge tree first grows regions, then joins them") {
  const device_groups g = grouped(from_settings("deepcee-four"));
  REQUIRE(g.merges.size() == 21);
  CHECK(g.merges_inside() == 18);
  std::vector<std::set<std::size_t>> under(22);
  for (std::size_t i = 0; i < 22; ++i) under[i] = {i};
  for (std::size_t m = 0; m < g.merges.size(); ++m) {
    const auto& left = under[g.merges[m].left];
    const auto& right = under[g.merges[m].right];
    CHECK(*left.begin() < *right.begin());
    double sum = 0;
    for (const std::size_t a : left) {
      for (const std::size_t b : right) sum += g.distances(a, b);
    }
    CHECK(g.merges[m].height == Approx(sum / static_cast<double>(left.size() * right.size())));
    const bool inside = g.region_of[*left.begin()] == g.region_of[*right.begin()];
    CHECK(inside == (m < g.merges_inside()));
    std::set<std::size_t> both = left;
    both.insert(right.begin(), right.end());
    under.push_back(std::move(both));
  }
  CHECK(under.back().size() == 22);
}

TEST_CASE("scaling all distances changes no group and no merge, nor does scaling all scores") {
  for (auto seed = first_seed(); seed < first_seed() + 100; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    const distance_matrix d = random.chance(0.5) ? plant(random).distances : random_distances(random, 16, random.chance(0.7), false);
    std::vector<double> scores;
    for (std::size_t i = 0; i < d.size(); ++i) scores.push_back(random.chance(0.5) ? random.integer(10, 14) : random.between(10, 14));
    const device_groups g = group_devices(d, scores);
    for (const double factor : {0.001, 1.0 / 3, 7.0, 1e9}) {
      distance_matrix scaled(d.size());
      std::vector<double> faster;
      for (std::size_t a = 0; a < d.size(); ++a) {
        faster.push_back(factor * scores[a]);
        for (std::size_t b = a + 1; b < d.size(); ++b) scaled.set(a, b, factor * d(a, b));
      }
      const device_groups other = group_devices(scaled, faster);
      CHECK(regions_of(other) == regions_of(g));
      CHECK(classes_of(other) == classes_of(g));
      REQUIRE(other.merges.size() == g.merges.size());
      for (std::size_t m = 0; m < g.merges.size(); ++m) {
        CHECK((other.merges[m].left == g.merges[m].left && other.merges[m].right == g.merges[m].right));
        CHECK(other.merges[m].height == Approx(factor * g.merges[m].height));
      }
    }
  }
}

TEST_CASE("permuting devices permutes groups") {
  for (auto seed = first_seed(); seed < first_seed() + 100; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    const distance_matrix d = random.chance(0.3)   ? coarsen::network_distances(from_settings("deepcee-four"), 1_MB)
                              : random.chance(0.5) ? plant(random).distances
                                                   : random_distances(random, 16, false, false);
    std::vector<double> scores;
    for (std::size_t i = 0; i < d.size(); ++i) scores.push_back(random.between(10, 14));
    std::vector<std::size_t> to(d.size());
    std::iota(to.begin(), to.end(), std::size_t{0});
    random.shuffle(to);
    distance_matrix moved(d.size());
    std::vector<double> moved_scores(d.size());
    for (std::size_t a = 0; a < d.size(); ++a) {
      moved_scores[to[a]] = scores[a];
      for (std::size_t b = a + 1; b < d.size(); ++b) moved.set(to[a], to[b], d(a, b));
    }
    const auto permuted = [&](const sets& groups) {
      sets all;
      for (const auto& group : groups) {
        std::set<int> one;
        for (const int x : group) one.insert(static_cast<int>(to[static_cast<std::size_t>(x)]));
        all.insert(one);
      }
      return all;
    };
    const device_groups g = group_devices(d, scores), other = group_devices(moved, moved_scores);
    CHECK(regions_of(other) == permuted(regions_of(g)));
    CHECK(classes_of(other) == permuted(classes_of(g)));
  }
}

TEST_CASE("a thousand devices in fifty regions") {
  random_source random(first_seed());
  distance_matrix d(1000);
  for (std::size_t a = 0; a < 1000; ++a) {
    for (std::size_t b = a + 1; b < 1000; ++b) d.set(a, b, (a % 50 == b % 50 ? 1 : 10) * random.between(0.8, 1.2));
  }
  const device_groups g = group_devices(d, alike(d));
  REQUIRE(g.regions.size() == 50);
  for (std::size_t r = 0; r < 50; ++r) {
    CHECK(g.regions[r].devices.size() == 20);
    for (const device_id x : g.regions[r].devices) CHECK(x.index() % 50 == r);
    CHECK(g.regions[r].classes.size() == 1);
  }
  CHECK(g.merges.size() == 999);
}

std::vector<device> three() {
  return {{.name = "a", .memory = 1_GB, .compute = 1_TFLOP_per_s},
          {.name = "b", .memory = 1_GB, .compute = 1_TFLOP_per_s},
          {.name = "c", .memory = 1_GB, .compute = 2_TFLOP_per_s}};
}

route_table::rule way(const std::string& from, const std::string& to, int resource, seconds latency = {}) {
  return {from, to, {latency, {{resource_id(resource)}}}};
}

TEST_CASE("of a pair's two directions the slower one counts, and both must be there") {
  const route_table wires{{{"fast", 100_MB_per_s}, {"slow", 10_MB_per_s}},
                          {way("a", "b", 0, 1_ms), way("b", "a", 1, 2_ms), way("b", "c", 0), way("c", "b", 0), way("a", "c", 0)}};
  const cluster c("c", three(), wires);
  const distance_matrix d = coarsen::network_distances(c, 1_MB);
  CHECK(d(0, 1) == Approx(2e-3 + 0.1));
  CHECK(d(1, 0) == d(0, 1));
  CHECK(d(1, 2) == Approx(0.01));
  CHECK(d(0, 2) == infinite);
  CHECK(d(1, 1) == 0);
  CHECK(coarsen::network_distances(c, 0_B)(0, 1) == 2e-3);
  // a and c share no region, because c cannot send to a.
  CHECK(regions_of(group_devices(c, 1_MB, std::vector<double>{1, 1, 1})) == sets{{0}, {1, 2}});
  CHECK(coarsen::network_distances(cluster("alone", three()[0]), 1_MB).size() == 1);
}

TEST_CASE("a region that nothing joins to another is named") {
  const route_table wires{{{"wire", 1_GB_per_s}}, {way("a", "b", 0), way("b", "a", 0), way("a", "c", 0)}};  // c has no way back
  const cluster c("c", three(), wires);
  CHECK_THROWS_WITH(
      group_devices(c, 1_MB, std::vector<double>{1, 1, 1}),
      "group_devices: no pair of routes, there and back, joins the region of device 2 \"c\" to another device; expected a link "
      "between regions");
  distance_matrix d(5);
  for (std::size_t a = 0; a < 5; ++a) {
    for (std::size_t b = a + 1; b < 5; ++b) d.set(a, b, (a < 2) == (b < 2) ? 1 : infinite);
  }
  CHECK_THROWS_WITH(group_devices(d, alike(d)), Contains("joins the region of device 0, device 1 to another device"));
  // In a row, all regions are joined although the ends are not joined directly: the merge tree has several roots.
  distance_matrix row(3);
  row.set(0, 1, 1);
  row.set(1, 2, 3);
  row.set(0, 2, infinite);
  const device_groups g = group_devices(row, alike(row));
  CHECK(regions_of(g) == sets{{0, 1}, {2}});
  CHECK(g.merges.size() == 1);
  CHECK(g.distance_s(0, 1) == infinite);
}

TEST_CASE("bad input of groups says who, what was given, and what was expected") {
  distance_matrix d(2);
  d.set(0, 1, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto says = [&](const std::vector<double>& scores, const coarsen::group_options& options, const std::string& text) {
    CHECK_THROWS_WITH(group_devices(d, scores, options), "group_devices: " + text);
    CHECK_THROWS_AS(group_devices(d, scores, options), invalid_input);
  };
  says({1, -1}, {}, "score of device 1 = -1; expected finite > 0");
  says({nan, 1}, {}, "score of device 0 = nan; expected finite > 0");
  says({1, infinite}, {}, "score of device 1 = inf; expected finite > 0");
  says({0, 1}, {}, "score of device 0 = 0; expected finite > 0");
  says({1}, {}, "1 scores; expected 2, one for each device");
  says({1, 1}, {.network_threshold = -0.5}, "network_threshold = -0.5; expected finite >= 0");
  says({1, 1}, {.network_threshold = nan}, "network_threshold = nan; expected finite >= 0");
  says({1, 1}, {.compute_threshold = -1}, "compute_threshold = -1; expected finite >= 0");
  says({1, 1}, {.compute_threshold = infinite}, "compute_threshold = inf; expected finite >= 0");
  d.set(0, 1, -2);
  says({1, 1}, {}, "distance of device 0 and device 1 = -2; expected >= 0");
  d.set(0, 1, nan);
  says({1, 1}, {}, "distance of device 0 and device 1 = nan; expected >= 0");
  CHECK_THROWS_WITH(group_devices(distance_matrix(), {}), "group_devices: expected at least one device");
  const cluster c("c", three(), mesh{1_GB_per_s});
  CHECK_THROWS_WITH(group_devices(c, 1_MB, std::vector<double>{1, 1, -3}),
                    "group_devices: score of device 2 \"c\" = -3; expected finite > 0");
  CHECK_THROWS_WITH(coarsen::network_distances(c, bytes(-1)), "network_distances: message = -1 B; expected finite >= 0");
  CHECK_THROWS_WITH(coarsen::network_distances(c, bytes(nan)), "network_distances: message = nan B; expected finite >= 0");
}

/// Times by phase and device; a layer called "free" takes none.
struct known_times {
  [[nodiscard]] seconds time(const work& w, const device& d) const {
    if (w.layer.name == "free") return {};
    if (w.layer.name == "bad") return seconds(-1);
    return seconds((w.phase == phase::forward ? 1 : 2) * w.batch / (d.compute.value() / 1e12));
  }
};

TEST_CASE("a score is the sum of weight over time of what a device is timed with") {
  const cluster c("c", three(), mesh{1_GB_per_s});
  const std::span<const device> all = c.devices();
  layer some, free, bad;
  some.name = "some";
  free.name = "free";
  bad.name = "bad";
  using coarsen::benchmark;
  const benchmark first{{{some, phase::forward, 2}, {free, phase::forward, 2}}};  // 2 s and 1 s
  const benchmark second{{{some, phase::backward_input, 4}}, 3};                  // 8 s and 4 s
  const auto scores = coarsen::compute_scores(all, known_times{}, std::vector{first, second});
  CHECK(scores == std::vector<double>{0.5 + 3.0 / 8, 0.5 + 3.0 / 8, 1 + 3.0 / 4});

  planning_graph_builder b("toy");
  b.add_edge(b.add_layer({.name = "x", .forward_flops = 1_FLOP}), b.add_layer({.name = "y", .forward_flops = 1_FLOP}), 1_B);
  const planning_graph model = std::move(b).build();
  CHECK(coarsen::compute_scores(all, known_times{}, model, mode::training, 8) == std::vector<double>{0.1, 0.1, 0.2});
  CHECK(coarsen::compute_scores(all, known_times{}, model, mode::inference, 8) == std::vector<double>{0.5, 0.5, 1});
  CHECK(coarsen::compute_scores(all) == std::vector<double>{1e12, 1e12, 2e12});
  const auto real = coarsen::compute_scores(from_settings("deepcee-1").devices(), profiled_or_roofline{}, zoo::model("resnet50", {}));
  CHECK(real.size() == 22);
  CHECK(real[0] > real[12]);
  CHECK(real[12] > real[18]);

  const auto says = [&](const std::vector<benchmark>& these, const std::string& text) {
    CHECK_THROWS_WITH(coarsen::compute_scores(all, known_times{}, these), "compute_scores: " + text);
  };
  says({}, "expected a benchmark with a weight > 0, got none");
  says({first, {first.calls, -1}}, "weight of benchmark 1 = -1; expected finite >= 0");
  says({first, {first.calls, std::numeric_limits<double>::quiet_NaN()}}, "weight of benchmark 1 = nan; expected finite >= 0");
  says({first, {{{free}}}}, "benchmark 1 takes 0 s on device 0 \"a\"; expected > 0");
  CHECK_THROWS_AS(coarsen::compute_scores(all, known_times{}, std::vector<benchmark>{{{{bad}}}}), invalid_model);
  CHECK_THROWS_WITH(coarsen::compute_scores(all, known_times{}, model, mode::training, -1),
                    "compute_scores: batch = -1; expected finite > 0");
  const cluster unknown("u", {.name = "u", .memory = 1_GB});
  CHECK_THROWS_WITH(coarsen::compute_scores(unknown.devices()),
                    "compute_scores: compute of device 0 \"u\" is not known; expected a model with a profile of it");
}

}  // namespace test_device_groups
