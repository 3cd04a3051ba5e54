// SPDX-License-Identifier: BSL-1.0
#pragma once
// A sweep of plans: models, clusters, jobs and planners.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <hetplan/io/json_document.hpp>

#include "sweep.hpp"

namespace cli {

/// A case is a model, a cluster, a job and a planner; the last varies fastest.
class plan_sweep final : public sweep_cases {
 public:
  plan_sweep(const common_options& options, const std::string& file, const hetplan::io::json_document& document);

  [[nodiscard]] std::size_t size() const override { return models_.size() * clusters_.size() * jobs_.size() * planners_.size(); }
  [[nodiscard]] std::size_t competitors() const override { return planners_.size(); }
  [[nodiscard]] std::string key(std::size_t i) const override;
  [[nodiscard]] std::string title(std::size_t i) const override;
  [[nodiscard]] table_shape shape() const override;
  [[nodiscard]] std::string header_of_best() const override;
  [[nodiscard]] std::string group_text(const hetplan::io::json& row) const override;
  [[nodiscard]] std::string best_text(const hetplan::io::json& row) const override;

 private:
  struct position {
    std::size_t model, cluster, job, planner;
  };
  [[nodiscard]] position at(std::size_t i) const;
  [[nodiscard]] hetplan::io::json row(std::size_t i) const override;

  common_options options_;
  std::vector<named<hetplan::planning_graph>> models_;
  std::vector<named<hetplan::cluster>> clusters_;
  std::vector<named<hetplan::job>> jobs_;
  std::vector<std::string> planners_;
};

}  // namespace cli
