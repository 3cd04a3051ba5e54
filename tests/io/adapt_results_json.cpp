// SPDX-License-Identifier: BSL-1.0
// What is told of an adaptation: the JSON document.

#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/results_json.hpp>

#include "io/reading.hpp"
#include "support/compared_histories.hpp"

namespace test_adapt_results_json {

using namespace hetplan;
using test::comparison;
using test::one_stage;
using test::random_comparison;
using test::runs;
using test::two_layers;
using test::two_stages;

TEST_CASE("the histories that are written say what the histories hold", "[long]") {
  const std::uint64_t seed = test::first_seed();
  test::random_source random(seed);
  test::for_random_instances(40, [&](const test::instance& i) {
    INFO("seed " << seed);
    const comparison x = random_comparison(random, i, random.integer(1, 4), 40);
    const auto all = nlohmann::json::parse(io::write_histories(x.rows, x.model, x.cluster));
    REQUIRE(all.size() == 1);
    REQUIRE(all["policies"].size() == x.rows.size());
    for (std::size_t p = 0; p < x.rows.size(); ++p) {
      const adapt::history& h = x.rows[p].history;
      const auto& o = all["policies"][p];
      CHECK(o["policy"] == x.rows[p].policy);
      CHECK(o["status"] == std::string(to_string(h.status.result)));
      CHECK(o["reason"] == h.status.reason);
      CHECK(o["iterations"] == h.iterations);
      CHECK(o["violations"] == h.violations);
      CHECK(o["stall"] == h.stall_s);
      CHECK(o["energy"] == h.energy_J);
      CHECK(o["switches"] == h.switches);
      CHECK(o["bytes_moved"] == h.moved_bytes);
      CHECK(o["reaction"] == h.reaction_s);
      CHECK(o.contains("finished") == h.finished_s.has_value());
      if (h.finished_s) CHECK(o["finished"] == *h.finished_s);
      CHECK(o["missed_deadline"] == h.missed_deadline);
      CHECK(o["lost"] == h.lost);
      CHECK(o["cut_off"] == h.cut_off);
      for (const device& d : x.cluster.devices()) CHECK(o["device_energy"][d.name] == h.device_energy_J[d.id.index()]);
      REQUIRE(o["plans"].size() == h.plans.size());
      for (std::size_t k = 0; k < h.plans.size(); ++k)
        CHECK(o["plans"][k] == nlohmann::json::parse(io::write_plan(h.plans[k], x.model, x.cluster)));
      REQUIRE(o["adoptions"].size() == h.adoptions.size());
      for (std::size_t k = 0; k < h.adoptions.size(); ++k) {
        const adapt::adoption& a = h.adoptions[k];
        const nlohmann::json expected{{"caused", a.caused_s},   {"decided", a.decided_s},
                                      {"done", a.done_s},       {"step", std::string(to_string(a.reached))},
                                      {"reason", a.reason},     {"stall", a.stall_s},
                                      {"bytes", a.moved_bytes}, {"energy", a.moved_J},
                                      {"from", a.from},         {"plan", a.to}};
        CHECK(o["adoptions"][k] == expected);
      }
      // Stretches still follow one another, and nothing of them is lost.
      double at = 0, energy = 0;
      long long iterations = 0, late = 0;
      for (const auto& s : o["stretches"]) {
        REQUIRE(s.size() == 8);
        CHECK(s[1] == at);
        at = s[2];
        iterations += s[4].get<long long>();
        late += s[7].get<bool>() ? s[4].get<long long>() : 0;
        energy += s[6].get<double>();
      }
      CHECK(o["stretches"].size() <= h.stretches.size());
      CHECK(at == (h.stretches.empty() ? 0 : h.stretches.back().end_s));
      CHECK(iterations == h.iterations);
      CHECK(late == h.violations);
      CHECK(energy == Approx(h.energy_J));
    }
  });
}

TEST_CASE("stretches that only go on are written as one, too many are counted instead, and a plan has its prediction") {
  adapt::history h;
  h.plans = {two_stages(), one_stage()};
  h.predictions[1] = {.latency = 3_s};
  h.stretches = {runs(0, 10, 0, 5, 2),
                 runs(10, 14, 0, 2, 2),
                 runs(14, 16, 0, 1, 2, true),
                 {adapt::activity::stalled, 16, 20, 0, 0, 0, 1, false},
                 {adapt::activity::stalled, 20, 21, 0, 0, 0, 2, false},
                 runs(21, 23, 1, 1, 2),
                 runs(23, 26, 1, 1, 3)};
  const std::vector<io::policy_history> rows{{"p", h}};
  const cluster c = test::wireless(2);
  const auto written = nlohmann::json::parse(io::write_histories(rows, two_layers(), c))["policies"][0];
  CHECK(written["stretches"] == nlohmann::json::parse(R"([["running", 0, 14, 0, 7, 2, 140, false], ["running", 14, 16, 0, 1, 2, 20, true],
    ["stalled", 16, 21, 0, 0, 0, 3, false], ["running", 21, 23, 1, 1, 2, 20, false], ["running", 23, 26, 1, 1, 3, 30, false]])"));
  CHECK_FALSE(written.contains("stretches_left_out"));
  CHECK_FALSE(written["plans"][0].contains("predicted"));
  CHECK(written["plans"][1]["predicted"]["latency"] == 3);
  const auto few = nlohmann::json::parse(io::write_histories(rows, two_layers(), c, {.max_stretches = 4}))["policies"][0];
  CHECK(few["stretches"].empty());
  CHECK(few["stretches_left_out"] == 5);
}

}  // namespace test_adapt_results_json
