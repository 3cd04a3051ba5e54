// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/unused_job_fields.hpp>

namespace hetplan::io {

HETPLAN_INLINE std::vector<std::string> unused_job_fields(const json_node& n, const job& j, const job_use& use) {
  std::vector<std::string> lines;
  const auto unused = [&](const json_node& field, const std::string& why) {
    lines.push_back(escaped(field.document().file()) + ": " + field.pointer() + ": " + why + "; not used");
  };
  const mode what = j.workload.mode;
  const objective_kind objective = j.effective_objective();
  const bool wants_latency = objective == objective_kind::qoe || (use.latency_may_come && !j.objective);
  const auto look_at_qoe = [&](const json_node& qoe) {
    for (const auto& [key, value] : qoe.members()) {
      if (key == "latency" && !use.over_time && objective != objective_kind::qoe) {
        unused(value, "objective " + in_quotes(to_string(objective)) + " does not ask for a latency");
      } else if (key == "lambda" && !wants_latency) {
        unused(value, "objective " + in_quotes(to_string(objective)) + " has no latency that could be missed");
      } else if ((key == "deadline" || key == "iterations") && !use.over_time) {
        unused(value, "the end of a job matters to `hetplan adapt` alone");
      } else if (key == "deadline" && !j.qoe.iterations) {
        unused(value, "without qoe.iterations a job has no end");
      }
    }
  };
  for (const auto& [key, value] : n.members()) {
    if (key == "context" && what != mode::generation && j.workload.context != 0) unused(value, "only generation keeps a cache");
    if (key == "tokens" && what != mode::generation) unused(value, "only generation makes tokens");
    if (key == "optimizer_factor" && what != mode::training) unused(value, "only training has an optimizer");
    if (key == "schedule" && what != mode::training) unused(value, "only training has a backward to schedule");
    if (key == "objective" && use.over_time && j.qoe.deadline && j.qoe.iterations) {
      unused(value, "a job with a deadline is to end in time, then with the least energy");
    }
    if (key == "microbatch_sizes") {
      for (const json_node size : value.elements("")) {
        if (j.batch % size.integer(1) != 0) unused(size, size.shown() + " does not divide the batch " + std::to_string(j.batch));
      }
    }
    if (key == "memory_savers" && value.size() > 0) {
      unused(value, "no planner makes use of them yet; plans keep activations and whole optimizer states");
    }
    if (key == "split_tensors" && use.over_time && j.split_tensors) unused(value, "plans that change while they run share no tensors");
    if (key == "qoe") look_at_qoe(value);
  }
  return lines;
}

}  // namespace hetplan::io
