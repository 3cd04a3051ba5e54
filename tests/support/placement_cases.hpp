// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placement tables with their optimal makespans, enumerated by tests/oracle/placement.py at test time.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::test {

struct placement_case {
  place::placement_table table;
  place::placement_rules rules;
  std::optional<double> optimum_s;  ///< none: no placement keeps the rules
  std::string kind;
};

/// Returns a number; null stands for infinity.
inline double number_of(const nlohmann::json& x) { return x.is_null() ? std::numeric_limits<double>::infinity() : x.get<double>(); }

inline std::vector<double> numbers_of(const nlohmann::json& list) {
  std::vector<double> all;
  for (const nlohmann::json& x : list) all.push_back(number_of(x));
  return all;
}

inline placement_case read_placement_case(const nlohmann::json& c) {
  const nlohmann::json& t = c.at("table");
  place::placement_data d{.time_s = numbers_of(t.at("time_s")),
                          .held_bytes = numbers_of(t.at("held_bytes")),
                          .working_bytes = numbers_of(t.at("working_bytes")),
                          .capacity_bytes = numbers_of(t.at("capacity_bytes")),
                          .edge_time_s = numbers_of(t.at("edge_time_s")),
                          .resources = t.at("resources").get<std::size_t>()};
  for (std::size_t v = 0; v < d.held_bytes.size(); ++v) d.operators.push_back("o" + std::to_string(v));
  for (std::size_t k = 0; k < d.capacity_bytes.size(); ++k) d.devices.push_back("d" + std::to_string(k));
  for (const nlohmann::json& e : t.at("edges")) d.edges.push_back({e.at(0), e.at(1), e.at(2)});
  for (const nlohmann::json& x : t.at("tied")) d.tied.push_back({x.at(0), x.at(1).get<std::vector<std::size_t>>()});
  for (const nlohmann::json& p : t.at("pairs")) {
    d.pairs.push_back({p.at(0), number_of(p.at(1)), p.at(2).get<std::vector<std::size_t>>()});
  }
  place::placement_rules rules;
  for (const place::contention k : place::all_contentions) {
    if (to_string(k) == c.at("contention").get<std::string>()) rules.contention = k;
  }
  if (c.at("copies").get<std::string>() == "per_device") rules.copies = transfer_copies::per_device;
  const nlohmann::json& optimum = c.at("optimum");
  return {place::placement_table(std::move(d)), rules, optimum.is_null() ? std::nullopt : std::optional(optimum.get<double>()),
          c.at("kind").get<std::string>()};
}

inline std::string placement_oracle(std::uint64_t seed, int count) {
  return "python3 -B \"" HETPLAN_SOURCE_DIR "/tests/oracle/placement.py\" --seed " + std::to_string(seed) + " --count " +
         std::to_string(count);
}

/// Returns the cases of the oracle; empty if the oracle does not run.
inline std::vector<placement_case> placement_cases(std::uint64_t seed, int count) {
  const auto path = std::filesystem::temp_directory_path() / ("hetplan_placements_" + std::to_string(std::random_device{}()) + ".json");
  const std::string command = placement_oracle(seed, count) + " > \"" + path.string() + "\"";
  std::vector<placement_case> cases;
  if (std::system(command.c_str()) == 0) {
    std::ifstream file(path);
    const nlohmann::json document = nlohmann::json::parse(file);
    for (const nlohmann::json& c : document.at("cases")) cases.push_back(read_placement_case(c));
  }
  std::filesystem::remove(path);
  return cases;
}

}  // namespace hetplan::test
