// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
#include <iostream>
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "io/reading.hpp"
#include "support/shared_data.hpp"

using namespace hetplan;

namespace {

void check_agreed(const std::string& name, std::size_t count) {
  const auto path = test::shared_data("reference/" + name);
  if (!path) return;
  const auto all = nlohmann::json::parse(io::read_text(path->string()));
  REQUIRE(all["cases"].size() >= count);
  const auto agree = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); };
  for (std::size_t i = 0; i < count; ++i) {
    INFO(name << ", case " << i);
    const auto& x = all["cases"][i];
    const planning_graph model = io::read_model(test::document(x["model"].dump(), "model"));
    const cluster c = io::read_cluster(test::document(x["cluster"].dump(), "cluster"));
    io::check_together(model, c, "cluster");
    const plan p = io::read_plan(test::document(x["plan"].dump(), "plan"), model, c).plan;
    const evaluation e = evaluate(p, model, c, profiled_or_roofline{}).evaluation;
    const auto& expected = x["expected"];
    CHECK(agree(e.latency.value(), expected["latency"].get<double>()));
    const auto tokens = [&](const char* key, double mine) { CHECK((!expected.contains(key) || agree(mine, expected[key].get<double>()))); };
    tokens("ttft", e.ttft.value_or(seconds{}).value());
    tokens("time_between_tokens", e.time_between_tokens.value_or(seconds{}).value());
    tokens("tokens_per_second", e.tokens_per_second);
    tokens("prompt_tokens_per_second", e.prompt_tokens_per_second);
    for (const device& d : c.devices()) {
      const device_evaluation& mine = e.devices[d.id.index()];
      REQUIRE(mine.used == expected["energy"].contains(d.name));
      if (!mine.used) continue;
      CHECK(agree(mine.energy.value(), expected["energy"][d.name].get<double>()));
      CHECK(agree(mine.peak_memory.value(), expected["peak_memory"][d.name].get<double>()));
      CHECK(agree(mine.busy.value(), expected["busy"][d.name].get<double>()));
    }
    // Simulating a plan file reproduces its predicted numbers bit for bit.
    const io::plan_file again = io::read_plan(test::document(io::write_plan(ranked_plan{p, e}, model, c), "plan"), model, c);
    const evaluation f = evaluate(again.plan, model, c, profiled_or_roofline{}).evaluation;
    CHECK(f == e);
    CHECK(again.predicted->latency == e.latency);
    CHECK(again.predicted->gap == e.gap);
    CHECK(again.predicted->schedule_gap == e.schedule_gap);
    for (std::size_t d = 0; d < c.size(); ++d) CHECK(again.predicted->devices[d].energy == e.devices[d].energy);
  }
}

}  // namespace

TEST_CASE("the hundred agreed cases, read from files, have the agreed numbers") { check_agreed("simulator_cases.json", 100); }

TEST_CASE("plans of language models, read from files, have the agreed numbers") { check_agreed("language_cases.json", 120); }

TEST_CASE("language models, clusters and plans that mean nothing are refused") {
  const auto path = test::shared_data("reference/language_cases.json");
  if (!path) return;
  const auto all = nlohmann::json::parse(io::read_text(path->string()));
  for (const auto& x : all["refused"]) {
    INFO(x["what"]);
    const auto judge_it = [&] {
      const planning_graph model = io::read_model(test::document(x["model"].dump(), "model"));
      const cluster c = io::read_cluster(test::document(x["cluster"].dump(), "cluster"));
      const plan p = io::read_plan(test::document(x["plan"].dump(), "plan"), model, c).plan;
      io::check_together(model, c, "cluster", p.workload);
      static_cast<void>(evaluate(p, model, c, profiled_or_roofline{}));
    };
    CHECK_THROWS_AS(judge_it(), invalid_input);
  }
}

TEST_CASE("the agreed cases of the second file, read from files, have the agreed numbers") { check_agreed("simulator_cases_2.json", 140); }
