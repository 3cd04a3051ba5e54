// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Reports of a run: measured against predicted.

#include <optional>
#include <string>
#include <vector>

#include "worker.hpp"

namespace executors {

/// A lost device and the cost of recovery.
struct recovery {
  std::string lost;
  int iteration = 0;     ///< iteration under way, which is repeated
  double noticed_s = 0;  ///< from its last heartbeat to the verdict
  double replanned_s = 0;
  double moved_s = 0;  ///< time to move layers to their new devices
  double moved_bytes = 0;
  double predicted_s = 0;
};

struct run_report {
  std::string executor, network, plan;
  double predicted_s = 0;
  std::vector<iteration_record> iterations;  ///< the warm-up first, which no time includes
  bool paced = true;
  std::string slow = {};  ///< means of slowing devices: "repeat" or "wait"
  int overruns = 0;
  std::vector<recovery> recoveries = {};
  std::optional<double> difference = {};  ///< relative to training on one device

  [[nodiscard]] double measured_s() const;
};

[[nodiscard]] std::string report_json(const run_report& r);

[[nodiscard]] std::string report_text(const run_report& r);

}  // namespace executors
