// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What an executor says of a run: measured against predicted.

#include <optional>
#include <string>
#include <vector>

#include "worker.hpp"

namespace executors {

/// A device that was lost, and what going on without it took.
struct recovery {
  std::string lost;
  int iteration = 0;       ///< that was under way, and is done again
  double noticed_s = 0;    ///< from its last beat to the verdict
  double replanned_s = 0;  ///< planning
  double moved_s = 0;      ///< layers to their new devices
  double moved_bytes = 0;
  double predicted_s = 0;  ///< an iteration of the new plan
};

struct run_report {
  std::string executor, network, plan;
  double predicted_s = 0;
  std::vector<iteration_record> iterations;  ///< the warm-up first, which counts in no time
  bool paced = true;
  std::string slow = {};  ///< how slower devices are slow: "repeat" or "wait"
  int overruns = 0;
  std::vector<recovery> recoveries = {};
  std::optional<double> difference = {};  ///< from training on one device

  [[nodiscard]] double measured_s() const;
};

/// The document of `--json`.
[[nodiscard]] std::string report_json(const run_report& r);

/// The same in a few lines.
[[nodiscard]] std::string report_text(const run_report& r);

}  // namespace executors
