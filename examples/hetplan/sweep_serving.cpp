// SPDX-License-Identifier: BSL-1.0
#include "sweep_serving.hpp"

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include <hetplan/core/version.hpp>
#include <hetplan/exchange/requests_file.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/requests_csv.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/io/serving_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/recipes/serving_systems.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/size_for.hpp>

#include "judged_services.hpp"

namespace cli {

using namespace hetplan;
using io::json;

serving_sweep::serving_sweep(const common_options& options, const std::string& file, const io::json_document& document)
    : sweep_cases(file), seed_(static_cast<std::uint64_t>(options.seed.value_or(standard_seed))) {
  require_no_model_options(options, "a sweep of serving");
  require_no_planner_options(options, "a sweep of serving");
  std::vector<std::string> known;
  for (const auto& s : recipes::serving_systems) known.emplace_back(s.name);
  const io::serving_sweep s = io::read_serving_sweep(document, known);
  const auto load = [&](const std::string& name, auto&& parse, std::size_t most_bytes = io::max_file_bytes) {
    files_.push_back(path_of(name));
    std::string text = io::read_text(files_.back(), most_bytes);
    const auto d = digest(name, text);
    return std::pair(parse(std::move(text), files_.back()), d);
  };
  for (const auto& name : s.clouds) {
    auto [cloud, d] = load(name, [](const auto& text, const auto& path) { return io::read_cloud(io::json_document::parse(text, path)); });
    clouds_.push_back({name, std::move(cloud), d});
  }
  for (const auto& name : s.services) {
    auto [services, d] = load(name, [](const auto& text, const auto& path) {
      return io::read_services(io::json_document::parse(text, path), variant_judge_of(path, nullptr));
    });
    services_.push_back({name, std::move(services), d});
  }
  for (const auto& name : s.requests) {
    auto [file_of, d] = load(
        name,
        [](std::string text, const auto& path) {
          return requests_file{path, std::move(text)};
        },
        io::max_requests_bytes);
    requests_.push_back({name, std::move(file_of), d});
  }
  read_streams(s);
  for (const auto& cloud : clouds_) {
    if (s.faults.empty()) {
      faults_.emplace_back();
      continue;
    }
    auto [faults, d] = load(s.faults, [&](const auto& text, const auto& path) {
      const auto file_of = io::json_document::parse(text, path);
      auto all = io::read_faults(file_of, cloud.value);
      for (std::string& line : io::unused_faults(io::json_node(file_of), all, cloud.value)) warnings_.push_back(std::move(line));
      return all;
    });
    faults_.push_back(std::move(faults));
    faults_digest_ = d;
  }
  cycles_ = s.cycles.empty() ? std::vector<seconds>{seconds()} : s.cycles;
  systems_ = s.systems.empty() ? known : s.systems;
  traces_digest_ = digest(s.trace_service, to_text(s.time_scale.value_or(1)));
  check_cases();
}

void serving_sweep::read_streams(const io::serving_sweep& s) {
  bool any_trace = false;
  for (const auto& cloud : clouds_) {
    for (const auto& services : services_) {
      for (const auto& requests : requests_) {
        auto read = exchange::parse_requests_file(requests.value.text, requests.value.path, cloud.value, services.value.services,
                                                  {.service = s.trace_service, .time_scale = s.time_scale.value_or(1)});
        any_trace = any_trace || read.trace;
        if (read.skipped > 0)
          warnings_.push_back(requests.value.path + ": requests that got no token, left out: " + std::to_string(read.skipped));
        streams_.push_back(std::move(read.requests));
      }
    }
  }
  if (!any_trace && (!s.trace_service.empty() || s.time_scale))
    throw invalid_input(io::escaped(files_.front()) +
                        ": trace_service and time_scale are for traces of other projects, and requests has none");
  for (auto& requests : requests_) requests.value.text = {};
}

void serving_sweep::check_cases() const {
  const auto at = [&](const char* list, std::size_t i, const auto& check) { below(files_.front(), list + std::to_string(i), check); };
  for (std::size_t s = 0; s < services_.size(); ++s) {
    at("/services/", s, [&] { validate(services_[s].value.services); });
    for (const auto& cloud : clouds_) at("/services/", s, [&] { validate_fit(cloud.value, services_[s].value.services); });
  }
  const serve::any_placement_policy some(serve::fixed_placement({}));
  for (const auto& requests : streams_) {
    for (std::size_t c = 0; c < cycles_.size(); ++c)
      at("/cycles/", c, [&] { validate(serve::serving_options{.changes = {.cycle = cycles_[c], .policy = some}}, requests); });
  }
}

serving_sweep::position serving_sweep::at(std::size_t i) const {
  position p{};
  p.system = i % systems_.size();
  i /= systems_.size();
  p.cycle = i % cycles_.size();
  i /= cycles_.size();
  p.requests = i % requests_.size();
  i /= requests_.size();
  p.services = i % services_.size();
  p.cloud = i / services_.size();
  return p;
}

std::string serving_sweep::key(std::size_t i) const {
  const position p = at(i);
  std::uint64_t d = digest("serving", version);
  for (const std::uint64_t part :
       {clouds_[p.cloud].digest, services_[p.services].digest, requests_[p.requests].digest, faults_digest_, traces_digest_, seed_})
    d = digest(d, std::to_string(part));
  d = digest(d, to_text(cycles_[p.cycle].value()));
  return hexadecimal(digest(d, systems_[p.system]));
}

std::string serving_sweep::title(std::size_t i) const {
  const position p = at(i);
  return requests_[p.requests].name + " of " + services_[p.services].name + " on " + clouds_[p.cloud].name + ", " + systems_[p.system];
}

json serving_sweep::row(std::size_t i) const {
  const position p = at(i);
  const auto& services = services_[p.services].value;
  const auto& requests = requests_of(p);
  const auto done = serve::serve_with(*recipes::serving_system_named(systems_[p.system], services.services, {.seed = seed_}),
                                      clouds_[p.cloud].value, services.services, services.times, requests, requests, requests.window(),
                                      cycles_[p.cycle], {.faults = faults_[p.cloud]});
  const auto& h = done.history;
  json o;
  o["key"] = key(i);
  o["cloud"] = clouds_[p.cloud].name;
  o["services"] = services_[p.services].name;
  o["requests"] = requests_[p.requests].name;
  o["system"] = systems_[p.system];
  io::put(o, "cycle", cycles_[p.cycle]);
  o["status"] = to_string(h.result.result);
  if (!h.result.reason.empty()) o["reason"] = h.result.reason;
  if (h.result.ok()) {  // otherwise the outcome of the rest is unknown
    io::put(o, "score", 1 - h.attainment());
    io::put(o, "attainment", h.attainment());
    io::put(o, "goodput", h.goodput_per_s());
    io::put(o, "mean_offloads", h.mean_offloads());
  }
  o["asked_for"] = h.requests();
  o["gpus"] = serve::used_gpus(done.first);
  o["instances"] = done.first.instances.size();
  o["changes"] = h.changes;
  return o;
}

sweep_cases::table_shape serving_sweep::shape() const {
  static constexpr std::array<std::string_view, 4> texts{"cloud", "services", "requests", "system"};
  static constexpr std::array<std::string_view, 4> numbers{"cycle", "attainment", "goodput", "mean_offloads"};
  static constexpr std::array<std::string_view, 15> columns{"cloud",     "services", "requests",   "cycle",   "system",
                                                            "status",    "score",    "attainment", "goodput", "mean_offloads",
                                                            "asked_for", "gpus",     "instances",  "changes", "reason"};
  return {texts, numbers, columns};
}

std::string serving_sweep::header_of_best() const { return "     cycle  best system       served    goodput  offloads"; }

std::string serving_sweep::group_text(const json& row) const {
  char text[16];
  const double cycle_s = row.at("cycle").get<double>();
  std::snprintf(text, sizeof text, "%10s", cycle_s > 0 ? readable(seconds(cycle_s)).c_str() : "-");
  return text;
}

std::string serving_sweep::best_text(const json& row) const {
  char text[80];
  std::snprintf(text, sizeof text, "%-14s %7.2f %% %10.4g %9.3f", escaped(row.at("system").get<std::string>()).c_str(),
                100 * row.at("attainment").get<double>(), row.at("goodput").get<double>(), row.at("mean_offloads").get<double>());
  return text;
}

}  // namespace cli
