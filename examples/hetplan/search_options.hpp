// SPDX-License-Identifier: BSL-1.0
#pragma once
// The options of commands that search for plans, wherever they are parsed.

#include <string>

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace cli {

inline void add_search_options(CLI::App& command, common_options& options) {
  command.add_option("--seed", options.seed, "seed of the searches for schedules of transfers (" + std::to_string(standard_seed) + ")")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--threads", options.threads, "threads of those searches (1); no answer depends on it")->check(CLI::Range(1, 1024));
  command
      .add_option("--budget", options.budget, "steps that a planner may take: tasks and transfers simulated, about; then its best so far")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

}  // namespace cli
