// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/estimate/bounds.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/io/serving_json.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "io/reading.hpp"
#include "support/shared_data.hpp"

using namespace hetplan;
using names = std::set<std::string>;

namespace {

std::string reference(const std::string& file) { return io::read_text(std::string(HETPLAN_SOURCE_DIR) + "/docs/reference/" + file); }

/// Returns the property names of every object of a schema; "" is the document.
std::map<std::string, names> properties(const std::string& kind) {
  const auto schema = nlohmann::json::parse(reference(kind + ".schema.json"));
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  if (schema["properties"].contains("format")) CHECK(schema["properties"]["format"]["const"] == "hetplan/" + kind + "/1");
  std::map<std::string, names> all;
  const auto add = [&](const std::string& name, const nlohmann::json& object) {
    if (!object.contains("properties")) return;
    INFO(kind << " " << name);
    CHECK(object["additionalProperties"] == false);
    for (const auto& [key, value] : object["properties"].items()) all[name].insert(key);
    if (!object.contains("required")) return;
    for (const auto& key : object["required"]) CHECK(all[name].contains(key.get<std::string>()));
  };
  add("", schema);
  for (const auto& [name, object] : schema["$defs"].items()) add(name, object);
  return all;
}

names set_of(io::key_list keys) { return {keys.begin(), keys.end()}; }
names keys_of(const nlohmann::json& object) {
  names all;
  for (const auto& [key, value] : object.items()) all.insert(key);
  return all;
}

}  // namespace

TEST_CASE("all pages name the same number of questions beyond which there is no bound") {
  static_assert(max_bound_questions == 3e7);
  const auto page = [](const std::string& name) { return io::read_text(std::string(HETPLAN_SOURCE_DIR) + "/docs/" + name); };
  CHECK(page("semantics.md").find("more than 3e7 questions") != std::string::npos);
  CHECK(page("performance.md").find("above 3·10⁷ questions") != std::string::npos);
}

TEST_CASE("the schemas describe the keys that the readers accept") {
  using map = std::map<std::string, names>;
  namespace k = io::keys;
  names names_of_precisions;
  for (const auto& [name, p] : precisions) names_of_precisions.insert(std::string(name));
  CHECK(properties("model") == map{{"", set_of(k::model)},
                                   {"layer", set_of(k::layer)},
                                   {"experts", set_of(k::experts)},
                                   {"profile", set_of(k::profile)},
                                   {"edge", set_of(k::edge)}});
  CHECK(properties("cluster") == map{{"", set_of(k::cluster)},
                                     {"device", set_of(io::keys_of<device>())},
                                     {"tier", set_of(io::keys_of<memory_tier>())},
                                     {"by_precision", names_of_precisions},
                                     {"power", set_of(io::keys_of<power_profile>())},
                                     {"topology", set_of(k::topology)},
                                     {"group", set_of(k::group)},
                                     {"resource", set_of(k::resource)},
                                     {"route", set_of(k::route)},
                                     {"via", set_of(k::via)}});
  CHECK(properties("plan") == map{{"", set_of(k::plan)},
                                  {"workload", set_of(k::workload)},
                                  {"stage", set_of(k::stage)},
                                  {"assignment", set_of(k::assignment)},
                                  {"pipeline", set_of(k::pipeline)},
                                  {"sync", set_of(k::sync)},
                                  {"schedule", set_of(k::schedule)},
                                  {"flow", set_of(k::flow)},
                                  {"predicted", set_of(k::predicted)}});
  CHECK(properties("timeline") == map{{"", set_of(k::timeline)},
                                      {"event", set_of(k::event)},
                                      {"transfer", set_of(k::foreign_transfer)},
                                      {"qoe", set_of(k::qoe_target)},
                                      {"trace", set_of(k::bandwidth_trace)}});
  CHECK(properties("sweep").at("") == set_of(k::sweep));
}

TEST_CASE("the schemas of serving describe the keys that are read, and those that are written") {
  using map = std::map<std::string, names>;
  namespace k = io::keys;
  CHECK(properties("cloud") == map{{"", set_of(k::cloud)},
                                   {"ring", set_of(io::keys_of<serve::ring_options>())},
                                   {"server", set_of(k::server)},
                                   {"gpu", set_of(k::gpu)},
                                   {"device", set_of(io::keys_of<serve::registered_device>())}});
  CHECK(properties("services") == map{{"", set_of(k::services)},
                                      {"service", set_of(k::service)},
                                      {"tokens", set_of(k::token_counts)},
                                      {"variant", set_of(io::keys_of<serve::service_variant>())},
                                      {"pass", set_of(k::pass)},
                                      {"step", set_of(k::step)},
                                      {"judged", set_of(k::judged)}});
  CHECK(properties("deployment") ==
        map{{"", set_of(k::deployment)}, {"instance", set_of(k::instance)}, {"change", set_of(k::deployment_change)}});
  CHECK(properties("faults") == map{{"", set_of(k::faults)}, {"event", set_of(k::fault)}});
  CHECK(properties("serving-sweep") == map{{"", set_of(k::serving_sweep)}});

  serve::service_history h;
  h.result = {outcome::stopped, "an observer said so"};
  h.services.resize(1);
  h.services[0].latency.add(0.1);
  h.services[0].ttft.add(0.1);
  h.services[0].time_between_tokens.add(0.1);
  h.servers.resize(1);
  serve::edge_cloud cloud;
  cloud.servers.resize(1);
  const auto written = nlohmann::json::parse(io::write_history(h, cloud, std::vector<serve::service>(1)));
  CHECK(properties("history") == map{{"", keys_of(written)},
                                     {"outcomes", keys_of(written["outcomes"])},
                                     {"service", keys_of(written["services"][0])},
                                     {"latency", keys_of(written["services"][0]["latency"])},
                                     {"broke", keys_of(written["services"][0]["broke"])},
                                     {"server", keys_of(written["servers"][0])}});
}

TEST_CASE("the examples of the reference page are read") {
  const std::string page = reference("files.md");
  std::optional<planning_graph> model;
  std::optional<cluster> home;
  std::map<std::string, int> seen;
  for (std::size_t at = page.find("```json\n"); at != std::string::npos; at = page.find("```json\n", at + 1)) {
    const std::string text = page.substr(at + 8, page.find("```", at + 8) - at - 8);
    INFO(text);
    const auto d = test::document(text, "files.md");
    const std::string format = io::document_format(d);
    ++seen[format];
    if (format == io::model_format) model = io::read_model(d);
    if (format == io::cluster_format) {
      const cluster c = io::read_cluster(d);
      if (!home) home = c;
    }
    if (format == io::job_format) static_cast<void>(io::read_job(d));
    if (format == io::sweep_format) {
      const std::vector<std::string> planners{"asteroid", "dora"};
      const io::sweep s = io::read_sweep(d, planners);
      CHECK(s.planners == planners);
      const auto known = [](const std::string& name, const auto& built_in) {
        return name.ends_with(".json") || std::find(built_in.begin(), built_in.end(), name) != built_in.end();
      };
      for (const std::string& name : s.models) CHECK(known(name, zoo::model_names()));
      for (const std::string& name : s.clusters) CHECK(known(name, zoo::cluster_names()));
    }
    if (format == io::plan_format) {
      REQUIRE(model);
      REQUIRE(home);
      io::check_together(*model, *home, "files.md", workload{});
      CHECK_NOTHROW(io::read_plan(d, *model, *home));
    }
    if (format == io::timeline_format) {
      REQUIRE(home);
      if (const auto traces = test::shared_data("data/bandwidth")) CHECK(io::read_timeline(d, *home, *traces).events.size() > 1000);
    }
  }
  CHECK(seen == std::map<std::string, int>{{"hetplan/model/1", 1},
                                           {"hetplan/cluster/1", 2},
                                           {"hetplan/job/1", 1},
                                           {"hetplan/plan/1", 2},
                                           {"hetplan/sweep/1", 1},
                                           {"hetplan/timeline/1", 1},
                                           {"hetplan/tasks/1", 1},
                                           {"hetplan/placement/1", 1}});
}
