// SPDX-License-Identifier: BSL-1.0
#pragma once
// A what-if sweep: its cases, and the table that grows by one row a case. Shared by `hetplan` and, over ranks, `hetplan_sweep_mpi`.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "commands.hpp"

namespace cli {

/// What came of a case: its row, one JSON object on one line without a line break, the same on every machine; or why there is none.
struct case_outcome {
  std::string text;
  bool failed = false;
};

/// Everything that a sweep file names, loaded and checked. A case is a model, a cluster, a job and a planner; the last varies fastest.
class sweep_cases {
 public:
  /// Throws invalid_input for whatever any case would trip over, before the first is run.
  sweep_cases(const common_options& options, const std::string& file);

  [[nodiscard]] std::size_t size() const { return models_.size() * clusters_.size() * jobs_.size() * planners_.size(); }
  /// Differs wherever a case could give another row: contents of the files, job, planner, seed, version.
  [[nodiscard]] std::string key(std::size_t i) const;
  /// Runs a case; a planner that throws ends this case and no other.
  [[nodiscard]] case_outcome run(std::size_t i) const;
  /// "toy on home, tight, dora".
  [[nodiscard]] std::string title(std::size_t i) const;
  /// What was read: the sweep and the files that it names.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  /// What of it is not used, a line each.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  [[nodiscard]] std::size_t planners() const { return planners_.size(); }

 private:
  template <class T>
  struct named {
    std::string name;
    T value;
    std::uint64_t digest;  ///< of the name and of what it stands for
  };
  struct position {
    std::size_t model, cluster, job, planner;
  };
  [[nodiscard]] position at(std::size_t i) const;
  [[nodiscard]] std::string row(std::size_t i) const;

  common_options options_;
  std::vector<std::string> files_, warnings_;
  std::vector<named<hetplan::planning_graph>> models_;
  std::vector<named<hetplan::cluster>> clusters_;
  std::vector<named<hetplan::job>> jobs_;
  std::vector<std::string> planners_;
};

/// Runs the cases that are missing, in any order and anywhere, and calls `done` in one thread with the outcome of each.
using case_runner = std::function<void(const sweep_cases& cases, std::span<const std::size_t> missing,
                                       const std::function<void(std::size_t, const case_outcome&)>& done)>;

/// The command, whoever runs the cases. Throws after all of them when some have failed: the rows of the others are in the table.
int sweep(const common_options& options, const sweep_options& o, const case_runner& run);

}  // namespace cli
