// SPDX-License-Identifier: BSL-1.0
#pragma once
// A sweep of serving: clouds, services, requests, cycles and systems.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <hetplan/io/json_document.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/io/serving_json.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/serving_options.hpp>

#include "sweep.hpp"

namespace cli {

/// A case is a cloud, services, requests, a cycle and a system; the last varies fastest.
class serving_sweep final : public sweep_cases {
 public:
  serving_sweep(const common_options& options, const std::string& file, const hetplan::io::json_document& document);

  [[nodiscard]] std::size_t size() const override {
    return clouds_.size() * services_.size() * requests_.size() * cycles_.size() * systems_.size();
  }
  [[nodiscard]] std::size_t competitors() const override { return systems_.size(); }
  [[nodiscard]] std::string key(std::size_t i) const override;
  [[nodiscard]] std::string title(std::size_t i) const override;
  [[nodiscard]] table_shape shape() const override;
  [[nodiscard]] std::string header_of_best() const override;
  [[nodiscard]] std::string group_text(const hetplan::io::json& row) const override;
  [[nodiscard]] std::string best_text(const hetplan::io::json& row) const override;

 private:
  struct position {
    std::size_t cloud, services, requests, cycle, system;
  };
  [[nodiscard]] position at(std::size_t i) const;
  /// Requests name servers and services: they are read for each cloud and list of services.
  [[nodiscard]] const hetplan::serve::request_stream& requests_of(const position& p) const {
    return streams_[(p.cloud * services_.size() + p.services) * requests_.size() + p.requests];
  }
  [[nodiscard]] hetplan::io::json row(std::size_t i) const override;
  void read_streams(const hetplan::io::serving_sweep& s);
  void check_cases() const;

  std::uint64_t seed_;
  std::vector<named<hetplan::serve::edge_cloud>> clouds_;
  std::vector<named<hetplan::io::services_file>> services_;
  struct requests_file {
    std::string path;
    std::string text;  ///< until it has been read
  };
  std::vector<named<requests_file>> requests_;
  std::vector<hetplan::serve::request_stream> streams_;             ///< [cloud][services][requests]
  std::vector<std::vector<hetplan::serve::serving_fault>> faults_;  ///< by cloud
  std::uint64_t faults_digest_ = 0;
  std::uint64_t traces_digest_ = 0;
  std::vector<hetplan::seconds> cycles_;
  std::vector<std::string> systems_;
};

}  // namespace cli
