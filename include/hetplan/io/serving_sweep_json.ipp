// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/serving_sweep_json.hpp>

#include <algorithm>

#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_object.hpp>
#include <hetplan/io/sweep_json.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::io {

HETPLAN_INLINE serving_sweep read_serving_sweep(const json_document& d, std::span<const std::string> systems) {
  const json_object o = open_document(d, serving_sweep_format, keys::serving_sweep);
  serving_sweep s;
  s.clouds = detail::read_names(o.at("clouds", "an array of clouds"), "a cloud file");
  s.services = detail::read_names(o.at("services", "an array of lists of services"), "a services file");
  s.requests = detail::read_names(o.at("requests", "an array of lists of requests"), "a requests file");
  if (const auto faults = o.find("faults")) s.faults = faults->name("a faults file");
  if (const auto list = o.find("cycles")) {
    for (const json_node n : list->elements("an array with at least one time", 1)) {
      const auto cycle = n.amount<seconds>(range::at_least_zero);
      if (std::ranges::find(s.cycles, cycle) != s.cycles.end()) n.fail("every cycle once");
      s.cycles.push_back(cycle);
    }
  }
  if (const auto list = o.find("systems")) {
    s.systems = detail::read_names(*list, "the name of a serving system");
    for (const json_node n : list->elements("")) {
      if (std::ranges::find(systems, n.text()) == systems.end()) n.fail("the name of a serving system", suggestion(n.text(), systems));
    }
  }
  if (const auto name = o.find("trace_service")) s.trace_service = name->name("the name of a service");
  if (const auto scale = o.find("time_scale")) s.time_scale = scale->number(range::above_zero);
  return s;
}

}  // namespace hetplan::io
