// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/faults_json.hpp>

#include <optional>
#include <string>
#include <utility>

#include <hetplan/io/json_object.hpp>
#include <hetplan/io/serving_names.hpp>

namespace hetplan::io {

namespace detail {

enum class fault_kind {
  server_fails,
  gpu_fails,
  device_leaves,
  device_registers,
  ring_cut,
  slow_link,
  wrong_state,
  server_joins,
  server_leaves
};
inline constexpr std::array<std::pair<std::string_view, fault_kind>, 9> fault_kinds{{{"server_fails", fault_kind::server_fails},
                                                                                     {"gpu_fails", fault_kind::gpu_fails},
                                                                                     {"device_leaves", fault_kind::device_leaves},
                                                                                     {"device_registers", fault_kind::device_registers},
                                                                                     {"ring_cut", fault_kind::ring_cut},
                                                                                     {"slow_link", fault_kind::slow_link},
                                                                                     {"wrong_state", fault_kind::wrong_state},
                                                                                     {"server_joins", fault_kind::server_joins},
                                                                                     {"server_leaves", fault_kind::server_leaves}}};

class fault_reader {
 public:
  explicit fault_reader(const serve::edge_cloud& cloud) : names_(cloud, {}) {}

  [[nodiscard]] serve::serving_fault read(const json_node& n) const {
    const json_object o(n, keys::fault, "a fault");
    serve::serving_fault f{
        o.required_amount<seconds>("at", range::at_least_zero), names_.server(o.at("server", "the name of a server")), {}};
    const auto kind = o.one_of("kind", fault_kinds);
    only(o, kind);
    const auto until = [&] { return o.required_amount<seconds>("until", range::above_zero); };
    const auto device = [&] { return names_.device(f.server, o.at("device", "the name of a device")); };
    switch (kind) {
      case fault_kind::server_fails: f.what = serve::server_fails{}; break;
      case fault_kind::gpu_fails: f.what = serve::gpu_fails{o.required_integer("gpu", 0)}; break;
      case fault_kind::device_leaves: f.what = serve::device_leaves{device()}; break;
      case fault_kind::device_registers: f.what = serve::device_registers{device()}; break;
      case fault_kind::ring_cut: f.what = serve::ring_cut{until()}; break;
      case fault_kind::slow_link: f.what = serve::slow_link{until(), o.at("factor", "a number > 0").number(range::above_zero)}; break;
      case fault_kind::wrong_state: f.what = serve::wrong_state{until()}; break;
      case fault_kind::server_joins: f.what = serve::server_joins{}; break;
      case fault_kind::server_leaves: f.what = serve::server_leaves{}; break;
    }
    return f;
  }

 private:
  /// Refuses what this kind has no use for.
  static void only(const json_object& o, fault_kind k) {
    const auto refuse_unless = [&](const char* key, bool wanted) {
      const auto found = o.find(key);
      if (found && !wanted) found->fail_with("a fault of this kind has no \"" + std::string(key) + "\"");
    };
    refuse_unless("until", k == fault_kind::ring_cut || k == fault_kind::slow_link || k == fault_kind::wrong_state);
    refuse_unless("gpu", k == fault_kind::gpu_fails);
    refuse_unless("device", k == fault_kind::device_leaves || k == fault_kind::device_registers);
    refuse_unless("factor", k == fault_kind::slow_link);
  }
  serving_names names_;
};

}  // namespace detail

HETPLAN_INLINE std::vector<serve::serving_fault> read_faults(const json_document& d, const serve::edge_cloud& cloud) {
  const json_object top = open_document(d, faults_format, keys::faults);
  const json_node list = top.at("events", "an array of faults");
  const detail::fault_reader reader(cloud);
  std::vector<serve::serving_fault> all;
  for (const json_node n : list.elements("an array of faults")) all.push_back(reader.read(n));
  at_node(
      list, [&] { serve::validate(all, cloud); }, "serving_faults: ");
  return all;
}

}  // namespace hetplan::io
