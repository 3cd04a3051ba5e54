// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>

#include <hetplan/fit/fit_devices.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/measured_csv.hpp>
#include <hetplan/plan/describe.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

constexpr int written_digits = 6;

/// Reads --fit: names of parameters, and host:NAME for the capacity of a resource.
fit::fit_options fit_options_of(const std::vector<std::string>& names) {
  fit::fit_options o{.digits = written_digits};
  if (names.empty()) return o;
  require_each_once("--fit", names);
  o.parameters.clear();
  std::vector<std::string_view> known;
  for (const auto& [name, k] : fit::parameter_kinds) {
    if (k != fit::parameter_kind::capacity) known.push_back(name);
  }
  for (const std::string& name : names) {
    if (name.starts_with("host:") && name.size() > 5) {
      o.resources.push_back(name.substr(5));
      continue;
    }
    const auto it = std::find_if(fit::parameter_kinds.begin(), fit::parameter_kinds.end(),
                                 [&](const auto& k) { return k.first == name && k.second != fit::parameter_kind::capacity; });
    if (it == fit::parameter_kinds.end()) {
      throw invalid_input("--fit: expected " + io::joined(known) + " or host:RESOURCE, got " + io::in_quotes(name) +
                          io::suggestion(name, known));
    }
    o.parameters.push_back(it->second);
  }
  return o;
}

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", v);
  return text;
}

std::string value_of(const fit::parameter& p, double v) {
  using fit::parameter_kind;
  switch (p.what) {
    case parameter_kind::capacity: return readable(bytes(v)) + "/s";
    case parameter_kind::launch:
    case parameter_kind::overhead:
    case parameter_kind::send_overhead:
    case parameter_kind::latency: return readable(seconds(v));
    default: return number(v);
  }
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

/// Returns why a parameter kept the cluster's number; "" for one that did not.
std::string why_kept(const fit::parameter& p, const std::vector<fit::parameter>& all) {
  if (p.verdict == fit::verdict::unused) return p.influence > 1e-9 ? "the rows hardly depend on it" : "no row depends on it";
  if (p.verdict != fit::verdict::inseparable) return "";
  std::vector<std::string> names;
  for (const std::size_t k : p.like) names.push_back(all[k].name());
  return "the rows cannot tell it from " + io::joined(names);
}

void print_rows(const io::measured_rows& m, const std::vector<double>& predicted) {
  std::vector<std::vector<std::string>> table{
      {"device", "model", "what", "batch", "prompt", "context", "tokens", "measured", "predicted", "off"}};
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    const fit::measurement& r = m.rows[i];
    char off[32];
    std::snprintf(off, sizeof off, "%+.1f %%", (predicted[i] / r.value - 1) * 100);
    table.push_back({escaped(m.devices[i]), escaped(m.models[i]), std::string(to_string(r.what)), std::to_string(r.batch),
                     std::to_string(r.prompt), r.context ? std::to_string(*r.context) : "-", std::to_string(r.tokens), number(r.value),
                     number(predicted[i]), off});
  }
  std::vector<std::size_t> width(table.front().size(), 0);
  for (const auto& row : table) {
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  constexpr std::size_t names = 3;  // set to the left
  for (const auto& row : table) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(width[c] - row[c].size(), ' ');
      line += (c > 0 ? "  " : "") + (c < names ? row[c] + pad : pad + row[c]);
    }
    std::printf("%s\n", line.c_str());
  }
  for (const fit::deviation& d : fit::deviations(m.rows, predicted)) {
    std::printf("%s: %zu %s, off by %s in the median, %s at worst\n", std::string(to_string(d.what)).c_str(), d.rows,
                d.rows == 1 ? "row" : "rows", percent(d.median).c_str(), percent(d.worst).c_str());
  }
}

void print_parameters(const std::vector<fit::parameter>& all) {
  for (const fit::parameter& p : all) {
    const std::string why = why_kept(p, all), name = escaped(p.name());
    if (!why.empty()) std::printf("%s: %s; kept %s\n", name.c_str(), escaped(why).c_str(), value_of(p, p.after).c_str());
    else
      std::printf("%s: %s, before %s%s\n", name.c_str(), value_of(p, p.after).c_str(), value_of(p, p.before).c_str(),
                  p.verdict == fit::verdict::at_limit ? "; at its limit" : "");
  }
}

io::json rows_json(const io::measured_rows& m, const std::vector<double>& predicted) {
  io::json document = io::json::object(), rows = io::json::array(), off = io::json::array();
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    io::json row;
    row["device"] = m.devices[i];
    row["model"] = m.models[i];
    row["what"] = to_string(m.rows[i].what);
    io::put(row, "measured", m.rows[i].value);
    io::put(row, "predicted", predicted[i]);
    rows.push_back(std::move(row));
  }
  for (const fit::deviation& d : fit::deviations(m.rows, predicted)) {
    io::json each;
    each["what"] = to_string(d.what);
    each["rows"] = d.rows;
    io::put(each, "median", d.median);
    io::put(each, "worst", d.worst);
    off.push_back(std::move(each));
  }
  document["rows"] = std::move(rows);
  document["off"] = std::move(off);
  return document;
}

io::json parameters_json(const std::vector<fit::parameter>& all) {
  io::json list = io::json::array();
  for (const fit::parameter& p : all) {
    io::json each;
    each["name"] = p.name();
    io::put(each, "before", p.before);
    io::put(each, "after", p.after);
    if (const std::string why = why_kept(p, all); !why.empty()) each["kept"] = why;
    if (p.verdict == fit::verdict::at_limit) each["at_limit"] = true;
    list.push_back(std::move(each));
  }
  return list;
}

}  // namespace

int fit_devices(const common_options& options, const fit_command_options& o) {
  require_no_model_options(options, "measurements, whose file names models");
  require_no_planner_options(options, "hetplan fit");
  outputs files({{"--out", o.out}}, {o.cluster, o.measured, o.check});
  const fit::fit_options asked = fit_options_of(o.parameters);
  const cluster devices = load_cluster(o.cluster);
  const io::measured_rows measured = io::read_measurements(o.measured, devices);
  std::optional<io::measured_rows> others;
  if (!o.check.empty()) others = io::read_measurements(o.check, devices);

  const fit::fit_result result = fit::fit_devices(devices, measured.rows, asked);
  for (const std::string& note : result.notes) warn(note);
  std::vector<double> checked;
  if (others) {
    for (const fit::measurement& m : others->rows) checked.push_back(fit::predict(m, result.cluster));
  }
  if (!o.out.empty()) files.put(o.out, io::write_cluster(result.cluster));
  if (options.json) {
    io::json document = rows_json(measured, result.predicted);
    document["parameters"] = parameters_json(result.parameters);
    if (others) document["check"] = rows_json(*others, checked);
    std::cout << io::json_text(document);
  } else {
    print_rows(measured, result.predicted);
    std::printf("\n");
    print_parameters(result.parameters);
    if (others) {
      std::printf("\nNot fitted: %s\n", escaped(o.check).c_str());
      print_rows(*others, checked);
    }
  }
  files.commit();
  return 0;
}

}  // namespace cli
