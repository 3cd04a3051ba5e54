// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/serving_names.hpp>

#include <string>

#include <hetplan/io/text.hpp>

namespace hetplan::io {

HETPLAN_INLINE serving_names::serving_names(const serve::edge_cloud& cloud, const std::vector<serve::service>& services) : cloud_(&cloud) {
  servers_.reserve(cloud.size());
  for (std::size_t s = 0; s < cloud.size(); ++s) servers_.emplace(cloud.servers[s].name, serve::server_id(s));
  for (std::size_t l = 0; l < services.size(); ++l) services_.emplace(services[l].name, serve::service_id(l));
}

HETPLAN_INLINE serve::server_id serving_names::find_server(std::string_view name) const {
  const auto it = servers_.find(name);
  return it == servers_.end() ? serve::server_id() : it->second;
}

HETPLAN_INLINE serve::service_id serving_names::find_service(std::string_view name) const {
  const auto it = services_.find(name);
  return it == services_.end() ? serve::service_id() : it->second;
}

HETPLAN_INLINE serve::server_id serving_names::server(const json_node& n) const {
  const auto name = n.text("the name of a server");
  if (const auto s = find_server(name); s.valid()) return s;
  std::vector<std::string_view> all;
  for (const auto& s : cloud_->servers) all.push_back(s.name);
  n.fail("the name of a server of cloud " + in_quotes(cloud_->name), suggestion(name, all));
}

HETPLAN_INLINE serve::service_id serving_names::service(const json_node& n) const {
  const auto name = n.text("the name of a service");
  if (const auto l = find_service(name); l.valid()) return l;
  std::vector<std::string_view> all;
  for (const auto& [known, l] : services_) all.push_back(known);
  n.fail("the name of a service", suggestion(name, all));
}

HETPLAN_INLINE int serving_names::device(serve::server_id owner, const json_node& n) const {
  const auto name = n.text("the name of a device");
  const auto& devices = (*cloud_)[owner].devices;
  std::vector<std::string_view> all;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].name == name) return static_cast<int>(d);
    all.push_back(devices[d].name);
  }
  n.fail("the name of a device of server " + in_quotes((*cloud_)[owner].name), suggestion(name, all));
}

}  // namespace hetplan::io
