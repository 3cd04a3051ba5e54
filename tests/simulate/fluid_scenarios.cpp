// SPDX-License-Identifier: BSL-1.0
// Flows over shared resources against exact fractions that SimGrid confirms (../shared/reference).

#include <hetplan/simulate/simulator.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

using namespace hetplan;
using namespace hetplan::test;
using nlohmann::json;

namespace {
double fraction(const std::string& text) {
  const std::size_t slash = text.find('/');
  return slash == std::string::npos ? std::stod(text) : std::stod(text.substr(0, slash)) / std::stod(text.substr(slash + 1));
}
}  // namespace

TEST_CASE("flows end when exact max-min fairness says") {
  const auto path = test::shared_data("reference/fluid_scenarios.json");
  if (!path) return;
  std::ifstream file(*path);
  const json document = json::parse(file);
  int flows_checked = 0;
  for (const json& s : document.at("scenarios")) {
    INFO("scenario " << s.at("scenario"));
    const json& flows = s.at("flows");
    std::vector<double> capacities;
    std::map<std::string, int> number;
    for (const auto& [name, capacity] : s.at("resources").items()) {
      number[name] = static_cast<int>(capacities.size());
      capacities.push_back(capacity.get<double>());
    }
    const auto first_cap = static_cast<int>(capacities.size());
    for (const json& f : flows) capacities.push_back(f.at("rate_cap_Bps").is_null() ? 1 : f.at("rate_cap_Bps").get<double>());

    transfers_alone x(2 * static_cast<int>(flows.size()), capacities);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const json& f = flows[i];
      std::vector<std::pair<int, double>> via;
      for (const auto& [name, use] : f.at("uses").items()) via.emplace_back(number.at(name), use.get<double>());
      if (!f.at("rate_cap_Bps").is_null()) via.emplace_back(first_cap + static_cast<int>(i), 1);
      x.add(2 * static_cast<int>(i), 2 * static_cast<int>(i) + 1, f.at("bytes").get<double>(), f.at("start_s").get<double>(), via);
    }
    simulator_options options;
    for (const json& c : s.at("capacity_changes")) {
      const std::string name = c.at("resource").get<std::string>();
      options.capacities.push_back(
          {seconds(c.at("at_s").get<double>()), resource_id(number.at(name)), bytes_per_second(c.at("capacity").get<double>())});
    }
    const trace t = std::move(x).run(fair_share{}, options);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      INFO("flow " << flows[i].at("name"));
      CHECK(t.transfers[i].end_s == Approx(fraction(flows[i].at("finish_exact").get<std::string>())).epsilon(1e-9));
      ++flows_checked;
    }
  }
  CHECK(flows_checked >= 18);
}
