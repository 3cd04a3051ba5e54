// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Names of servers, services and devices, as files use them.

#include <string_view>
#include <unordered_map>
#include <vector>

#include <hetplan/io/json_node.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service.hpp>

namespace hetplan::io {

/// Finds ids by name; what it refers to must outlive it. Throws at the node where there is no such name.
class serving_names {
 public:
  serving_names(const serve::edge_cloud& cloud, const std::vector<serve::service>& services);

  [[nodiscard]] serve::server_id server(const json_node& n) const;
  [[nodiscard]] serve::service_id service(const json_node& n) const;
  /// The number of a registered device of a server.
  [[nodiscard]] int device(serve::server_id owner, const json_node& n) const;

  /// Without a node: no id where there is no such name.
  [[nodiscard]] serve::server_id find_server(std::string_view name) const;
  [[nodiscard]] serve::service_id find_service(std::string_view name) const;

 private:
  const serve::edge_cloud* cloud_;
  std::unordered_map<std::string_view, serve::server_id> servers_;
  std::unordered_map<std::string_view, serve::service_id> services_;
};

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/serving_names.ipp>
#endif
