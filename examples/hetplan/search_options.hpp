// SPDX-License-Identifier: BSL-1.0
#pragma once
// Parsing helpers for the options of commands that search for plans.

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "named_models.hpp"

namespace cli {

/// Accepts whole numbers from `least` to the type's maximum; CLI11 would clamp larger ones.
template <class T>
CLI::Validator whole_number(T least = 0) {
  return CLI::Validator(
      [least](const std::string& given) {
        T v = 0;
        const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), v);
        if (error == std::errc() && end == given.data() + given.size() && v >= least) return std::string();
        return "expected a whole number from " + std::to_string(least) + " to " + std::to_string(std::numeric_limits<T>::max()) + ", got " +
               hetplan::io::in_quotes(given);
      },
      "");
}

inline CLI::Validator positive_number() {
  return CLI::Validator(
      [](const std::string& given) {
        double v = 0;
        const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), v);
        if (error == std::errc() && end == given.data() + given.size() && std::isfinite(v) && v > 0) return std::string();
        return "expected a finite number > 0, got " + hetplan::io::in_quotes(given);
      },
      "");
}

/// Throws CLI::ValidationError for empty list items as in "gpipe,,dora", which CLI11 drops, before anything is parsed.
inline void require_items(const CLI::App& app, int argc, const char* const* argv) {
  const std::function<const CLI::Option*(const CLI::App&, const std::string&)> find = [&](const CLI::App& a,
                                                                                          const std::string& name) -> const CLI::Option* {
    if (const CLI::Option* o = a.get_option_no_throw(name)) return o;
    for (const CLI::App* command : a.get_subcommands([](const CLI::App*) { return true; })) {
      if (const CLI::Option* o = find(*command, name)) return o;
    }
    return nullptr;
  };
  const CLI::Option* list = nullptr;  // option whose values follow
  for (int i = 1; i < argc; ++i) {
    std::string value = argv[i];
    if (value.starts_with("--")) {
      const std::size_t end = value.find('=');
      list = find(app, value.substr(0, end));
      if (list != nullptr && list->get_delimiter() != ',') list = nullptr;
      if (end == std::string::npos) continue;
      value.erase(0, end + 1);
    }
    if (list == nullptr || value.empty()) continue;
    if (value.front() == ',' || value.back() == ',' || value.find(",,") != std::string::npos)
      throw CLI::ValidationError(list->get_name(), "expected a value on both sides of each comma, got " + hetplan::io::in_quotes(value));
  }
}

inline void add_search_options(CLI::App& command, common_options& options) {
  const auto model = [&](const char* option, auto& into, const auto& known, const std::string& text) {
    const std::vector<std::string> names = names_of(known);
    return command.add_option(option, into, text + ": " + hetplan::io::joined(names))
        ->check(CLI::Validator([names](const std::string& given) { return fault_in_name(given, names); }, ""));
  };
  model("--rows", options.rows, known_rows(), "of dora: where it may cut the model, by comma (the usual ones, polished inside blocks)")
      ->delimiter(',');
  model("--law", options.law, known_laws(), "of dora: how its search adds up a pipeline");
  model("--orders", options.orders, known_orders(), "of dora: which orders of the devices it searches");
  model("--transfers", options.transfers, known_transfers(), "of dora: who schedules the transfers");
  command
      .add_option("--contention", options.contention,
                  "of planners that place operators: which transfers take turns (shared: on every link, judged under fair sharing)")
      ->check(CLI::IsMember({"none", "per_link", "one_port", "shared"}));
  command.add_option("--copies", options.copies, "of planners that place operators: how often an output is sent (per_device)")
      ->check(CLI::IsMember({"per_edge", "per_device"}));
  command.add_option("--seed", options.seed, "seed of the searches for schedules of transfers (" + std::to_string(standard_seed) + ")")
      ->check(whole_number<int>());
  command
      .add_option("--threads", options.threads,
                  "threads of dora's searches (1), in compare of planners side by side (all cores); no answer depends on it")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--budget", options.budget, "steps that a planner may take: tasks and transfers simulated, about; then its best so far")
      ->check(whole_number<long long>(1))
      ->capture_default_str();
}

}  // namespace cli
