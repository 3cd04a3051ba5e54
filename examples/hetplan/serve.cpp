// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/draw/serving_report.hpp>
#include <hetplan/exchange/requests_file.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/requests_csv.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/io/serving_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/recipes/serving_systems.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/serve/size_for.hpp>

#include "commands.hpp"
#include "judged_services.hpp"
#include "outputs.hpp"
#include "serve_warnings.hpp"

namespace cli {

using namespace hetplan;

namespace {

/// Draws the number of handled requests, on a terminal only.
class serving_progress_line {
 public:
  explicit serving_progress_line(const common_options& options) : visible_(shows_progress(options)) {}
  ~serving_progress_line() {
    if (visible_) std::fprintf(stderr, "\r\033[K");
  }
  serving_progress_line(const serving_progress_line&) = delete;
  serving_progress_line& operator=(const serving_progress_line&) = delete;

  control operator()(const serve::serving_progress& p) {
    const int percent = static_cast<int>(100.0 * static_cast<double>(p.handled) / static_cast<double>(std::max<std::uint64_t>(1, p.of)));
    if (!visible_ || percent == drawn_) return control::go;
    drawn_ = percent;
    std::fprintf(stderr, "\r\033[K%3d %%, %llu of %llu requests, %s of the trace, %.0f served", percent,
                 static_cast<unsigned long long>(p.handled), static_cast<unsigned long long>(p.of), readable(p.now).c_str(), p.credit);
    std::fflush(stderr);
    return control::go;
  }

 private:
  bool visible_;
  int drawn_ = -1;
};

/// Prints the times of tokens of services that have any, and how many answers broke a limit.
void print_tokens(const serve::service_history& h, const std::vector<serve::service>& services) {
  bool any = false;
  for (std::size_t l = 0; l < services.size(); ++l) {
    const auto& t = h.services[l];
    if (t.ttft.count() == 0) continue;
    if (!std::exchange(any, true))
      std::printf("\n%-24s %10s %10s %10s %10s %10s %10s %10s\n", "tokens", "first p50", "first p99", "late", "between", "p50", "p99",
                  "slow");
    const auto between = [&](seconds s) { return t.time_between_tokens.count() == 0 ? std::string("-") : readable(s); };
    const auto& apart = t.time_between_tokens;
    std::printf("%-24s %10s %10s %10llu %10s %10s %10s %10llu\n", escaped(services[l].name).c_str(), readable(t.ttft.quantile(0.5)).c_str(),
                readable(t.ttft.quantile(0.99)).c_str(), static_cast<unsigned long long>(t.broke.ttft), between(apart.mean()).c_str(),
                between(apart.quantile(0.5)).c_str(), between(apart.quantile(0.99)).c_str(),
                static_cast<unsigned long long>(t.broke.time_between_tokens));
  }
}

void print(const serve::service_history& h, const std::vector<serve::service>& services) {
  std::printf("%-24s %10s %10s %8s %8s %8s %10s %10s\n", "service", "requests", "served", "share", "in part", "late", "p50", "p99");
  for (std::size_t l = 0; l < services.size(); ++l) {
    const auto& t = h.services[l];
    const bool timed = t.latency.count() > 0;
    std::printf("%-24s %10llu %10llu %7.2f%% %8llu %8llu %10s %10s\n", escaped(services[l].name).c_str(),
                static_cast<unsigned long long>(t.requests()), static_cast<unsigned long long>(t[serve::request_outcome::served]),
                100 * t.attainment(), static_cast<unsigned long long>(t[serve::request_outcome::in_part]),
                static_cast<unsigned long long>(t[serve::request_outcome::late]), timed ? readable(t.latency.quantile(0.5)).c_str() : "-",
                timed ? readable(t.latency.quantile(0.99)).c_str() : "-");
  }
  print_tokens(h, services);
  std::printf("p50 and p99: exact, or at most %.1f %% above\n\n", 100 * serve::latency_histogram::resolution);
  std::printf("%llu requests%s in %s, passed on %.3f times each\n", static_cast<unsigned long long>(h.requests()),
              h.result.ok() ? "" : " ended", readable(h.duration).c_str(), h.mean_offloads());
  for (const bool streams : {false, true}) {
    const auto part = h.attained_by(services, streams);
    if (part.asked > 0 && h.duration.value() > 0)
      std::printf("  %.2f %% of the %s served, %.4g a second\n", 100 * part.share(),
                  streams ? "frames of streams" : "requests with a latency", part.credit / h.duration.value());
  }
  for (std::size_t k = 0; k < serve::request_outcomes; ++k) {
    const auto o = static_cast<serve::request_outcome>(k);
    if (o == serve::request_outcome::served || h.count(o) == 0) continue;
    std::printf("  %-18s %llu\n", std::string(to_string(o)).c_str(), static_cast<unsigned long long>(h.count(o)));
  }
  if (!h.result.ok()) std::printf("%s: %s\n", std::string(to_string(h.result.result)).c_str(), h.result.reason.c_str());
}

serve::request_stream read_requests(const serve_options& o, const std::string& path, const serve::edge_cloud& cloud,
                                    const std::vector<serve::service>& services) {
  auto file = exchange::read_requests_file(path, cloud, services, {.service = o.trace_service, .time_scale = o.time_scale.value_or(1)});
  if (!file.trace && (!o.trace_service.empty() || o.time_scale))
    throw invalid_input("--trace-service and --time-scale: expected a trace of another project, got requests in " + escaped(path));
  if (file.skipped > 0) warn(path + ": requests that got no token, left out: " + std::to_string(file.skipped));
  return std::move(file.requests);
}

struct serving_inputs {
  serve::edge_cloud cloud;
  std::vector<serve::service> services;
  serve::any_service_time times;
  serve::request_stream requests;
  std::optional<serve::request_stream> expected;
  serve::serving_options run;
  std::vector<std::string> judged;  ///< what is told of variants whose times were
};

serving_inputs read_inputs(const serve_options& o) {
  auto cloud = io::read_cloud(io::json_document::load(o.cloud));
  std::vector<std::string> judged;
  auto file = io::read_services(io::json_document::load(o.services), variant_judge_of(o.services, &judged));
  serving_inputs in{std::move(cloud), std::move(file.services), std::move(file.times), {}, {}, {}, std::move(judged)};
  in.requests = read_requests(o, o.requests, in.cloud, in.services);
  if (!o.expected.empty()) in.expected = read_requests(o, o.expected, in.cloud, in.services);
  if (!o.faults.empty()) {
    const io::json_document faults = io::json_document::load(o.faults);
    in.run.faults = io::read_faults(faults, in.cloud);
    for (const std::string& line : io::unused_faults(io::json_node(faults), in.run.faults, in.cloud)) warn(line);
  }
  if (!o.records.empty()) in.run.detail = serve::history_detail::records;
  return in;
}

double read_share(const char* option, const std::string& text) {
  std::string_view digits(text);
  const bool percent = digits.ends_with('%');
  if (percent) digits.remove_suffix(1);
  double share = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), share);
  if (percent) share /= 100;
  if (error == std::errc() && end == digits.data() + digits.size() && share > 0 && share <= 1) return share;
  throw invalid_input(std::string(option) + ": expected a share above 0, at most 1, such as 99% or 0.99, got " + io::in_quotes(text));
}

serve::serving_system system_of(const serve_options& o, const std::vector<serve::service>& services) {
  recipes::serving_system_options how{.seed = static_cast<std::uint64_t>(o.seed.value_or(standard_seed))};
  if (o.offloads) how.most_offloads = *o.offloads;
  return *recipes::serving_system_named(o.system, services, how);
}

void refuse(std::initializer_list<std::pair<const char*, bool>> options, const std::string& because) {
  cli::refuse(std::span(options.begin(), options.size()), because);
}

void check_system(const serve_options& o) {
  const auto* known = std::ranges::find(recipes::serving_systems, o.system, &recipes::known_serving_system::name);
  if (known == recipes::serving_systems.end()) {
    std::vector<std::string_view> names;
    for (const auto& s : recipes::serving_systems) names.push_back(s.name);
    throw invalid_input("--system: expected one of " + io::joined(names) + ", got " + io::in_quotes(o.system) +
                        io::suggestion(o.system, names));
  }
  refuse({{"--offloads", o.offloads && !known->passes_on}}, "the system " + o.system + " does not count them");
  refuse({{"--seed", o.seed && !known->draws}}, "the system " + o.system + " draws nothing");
}

void check_options(const common_options& options, const serve_options& o) {
  check_system(o);
  if (o.size_for) {
    refuse({{"--cycle", o.cycle.has_value()},
            {"--expected", !o.expected.empty()},
            {"--deployment", !o.deployment.empty()},
            {"--faults", !o.faults.empty()},
            {"--records", !o.records.empty()},
            {"--html", !o.html.empty()},
            {"--explain", o.explain}},
           "not together with --size-for, which tries many sizes");
    refuse({{"--out", !o.out.empty() && o.out_cloud.empty()}},
           "with --size-for expected --out-cloud, too: the deployment is for a cloud with other GPUs");
    return;
  }
  refuse({{"--most-gpus", o.most_gpus.has_value()}, {"--out-cloud", !o.out_cloud.empty()}}, "expected --size-for, too");
  refuse({{"--explain", o.explain && options.json}}, "not together with --json, which has no place for it");
  if (!o.deployment.empty()) {
    refuse({{"--cycle", o.cycle.has_value()}, {"--expected", !o.expected.empty()}, {"--out", !o.out.empty()}, {"--explain", o.explain}},
           "the deployment is given; expected no --deployment, so that a system places");
  }
}

void print_quality(const serving_inputs& in) {
  const auto& expected = in.expected ? *in.expected : in.requests;
  const serve::cloud_damage damage = serve::damage_at_first(in.run.faults, in.cloud);
  const serve::deployment nothing;
  const auto r =
      serve::place_submodular({in.cloud, in.services, in.times, {}, expected.window(), damage, nothing},
                              serve::service_demand(in.cloud, in.services, {expected.begin(), expected.end()}, expected.window()));
  std::printf(
      "by the fluid estimate %.4g a second, no placement more than %.4g\n"
      "greedy's guarantee, 1/(1+P) = %.3g of the optimum, is for a submodular estimate, no service across servers, and at most one GPU of "
      "a server that cannot be filled\n"
      "placed from the list %zu, within servers %zu, across servers %zu, for arrivals by chance %zu; %llu gains worked out\n\n",
      r.value, r.bound, r.guarantee, r.stages[0], r.stages[1], r.stages[2], r.stages[3], static_cast<unsigned long long>(r.evaluated));
}

/// Prints a line per service: its variant, GPUs and counts; with --explain, how it runs on the first server's GPUs, and why.
void print_placed(const serve::deployment& d, const serving_inputs& in, const serve_options& o) {
  std::printf("%-24s %10s %8s %8s  %s\n", "service", "instances", "servers", "GPUs", "runs as");
  for (std::size_t l = 0; l < in.services.size(); ++l) {
    std::size_t count = 0;
    std::set<serve::server_id> servers;
    std::set<serve::gpu_slot> gpus;
    std::set<std::string> as;
    for (const auto& i : d.instances) {
      if (i.what != serve::service_id(l)) continue;
      ++count;
      servers.insert(i.leader());
      gpus.insert(i.gpus.begin(), i.gpus.end());
      std::string text = escaped(in.services[l].variants[static_cast<std::size_t>(i.variant)].name) + ", BS " + std::to_string(i.batch);
      if (i.frames > 1) text += ", MF " + std::to_string(i.frames);
      if (i.groups > 1) text += ", DP " + std::to_string(i.groups);
      if (i.device) text += ", on devices";
      as.insert(std::move(text));
    }
    std::printf("%-24s %10zu %8zu %8zu  %s\n", escaped(in.services[l].name).c_str(), count, servers.size(), gpus.size(),
                as.empty() ? "-" : io::joined(as, "; ").c_str());
  }
  std::printf("\n");
  if (!o.explain) return;
  const serve::placement_candidates candidates(in.cloud, in.services, in.times, system_of(o, in.services).operators);
  for (std::size_t l = 0; l < in.services.size(); ++l) {
    std::printf("%s\n", escaped(in.services[l].name).c_str());
    std::vector<std::vector<std::string>> told;  // several kinds of server may have the same reasons
    for (const auto* a : candidates.all()) {
      if (a->what != serve::service_id(l) || std::ranges::find(told, a->because) != told.end()) continue;
      told.push_back(a->because);
      for (const auto& sentence : a->because) std::printf("  %s%s\n", sentence.starts_with("category") ? "" : "  ", sentence.c_str());
    }
    if (told.empty()) std::printf("  runs on no GPU of this cloud\n");
  }
  std::printf("\n");
}

struct played {
  serve::deployment first;
  serve::service_history history;
  serve::serving_options run;
};

played play_deployment(const common_options& options, const serve_options& o, const serving_inputs& in) {
  auto file = io::read_deployment(io::json_document::load(o.deployment), in.cloud, in.services, in.times);
  auto run = in.run;
  if (!file.at.empty()) {
    auto in_turn = std::move(file.changes);
    in_turn.insert(in_turn.begin(), file.first);
    run.changes = {.at = file.at, .policy = serve::fixed_placement(std::move(in_turn))};
  }
  auto system = system_of(o, in.services);
  serving_progress_line line(options);
  auto history = serve::serve_requests(in.cloud, in.services, in.times, in.requests, file.first, system.handler, run, line);
  return {std::move(file.first), std::move(history), std::move(run)};
}

played play_system(const common_options& options, const serve_options& o, const serving_inputs& in) {
  const auto cycle =
      o.cycle ? seconds(read_amount("--cycle", *o.cycle, io::dimension_of<seconds>, io::range::above_zero, "60 s")) : seconds();
  const auto& expected = in.expected ? *in.expected : in.requests;
  serving_progress_line line(options);
  auto done = serve::serve_with(system_of(o, in.services), in.cloud, in.services, in.times, in.requests, expected, expected.window(), cycle,
                                in.run, line);
  auto run = in.run;
  run.changes.cycle = cycle;
  return {std::move(done.first), std::move(done.history), std::move(run)};
}

int find_size(const common_options& options, const serve_options& o, const serving_inputs& in) {
  const double target = read_share("--size-for", *o.size_for);
  outputs files({{"--out", o.out}, {"--out-cloud", o.out_cloud}}, {o.cloud, o.services, o.requests});
  const bool visible = shows_progress(options);
  const auto found = serve::size_for(
      target, [&] { return system_of(o, in.services); }, in.cloud, in.services, in.times, in.requests, o.most_gpus.value_or(64),
      [&](const serve::sizing_step& s) {
        if (visible) std::fprintf(stderr, "\r\033[K%d GPUs a server: %.2f %% served", s.gpus_per_server, 100 * s.attainment);
        return control::go;
      });
  if (visible) std::fprintf(stderr, "\r\033[K");
  if (found.result.ok()) {
    const auto cloud = serve::with_gpus(in.cloud, found.best.gpus_per_server);
    if (!o.out_cloud.empty()) files.put(o.out_cloud, io::write_cloud(cloud));
    if (!o.out.empty()) files.put(o.out, io::write_deployment({found.placed}, cloud, in.services));
  }
  if (options.json) {
    std::cout << io::write_sizing(found, target);
  } else {
    std::printf("%12s %8s %12s\n", "GPUs/server", "GPUs", "served");
    for (const auto& s : found.tried) std::printf("%12d %8zu %11.2f%%\n", s.gpus_per_server, s.gpus, 100 * s.attainment);
    if (found.result.ok()) {
      std::printf("\n%zu GPUs, at most %d a server, serve %.2f %% (%s)\n", found.best.gpus, found.best.gpus_per_server,
                  100 * found.best.attainment, o.system.c_str());
    } else {
      std::printf("\n%s: %s\n", std::string(to_string(found.result.result)).c_str(), found.result.reason.c_str());
    }
  }
  files.commit();
  return found.result.ok() ? 0 : 1;
}

}  // namespace

int serve_requests(const common_options& options, const serve_options& o) {
  require_no_model_options(options, "hetplan serve");
  check_options(options, o);
  const auto in = read_inputs(o);
  warn_of_kinds(in.cloud, in.services);
  warn_of_long_requests(in.services, in.requests);
  if (o.size_for) return find_size(options, o, in);
  outputs files({{"--records", o.records}, {"--html", o.html}, {"--out", o.out}},
                {o.cloud, o.services, o.requests, o.deployment, o.faults, o.expected});
  const auto done = o.deployment.empty() ? play_system(options, o, in) : play_deployment(options, o, in);
  const auto& h = done.history;
  if (o.deployment.empty()) warn_of_unplaced(done.first, in.services, in.requests);
  if (h.result.ok()) warn_of_the_end(o.deployment, o.faults, done.run, h.begin, h.duration);
  if (!o.records.empty()) files.put(o.records, io::write_records(h.records, in.cloud));
  if (!o.html.empty()) files.put(o.html, draw::serving_report_html(h, in.cloud, in.services, done.first, done.run));
  if (!o.out.empty()) files.put(o.out, io::write_deployment({done.first}, in.cloud, in.services));
  if (options.json) {
    std::cout << io::write_history(h, in.cloud, in.services);
  } else {
    for (const std::string& line : in.judged) std::printf("%s\n", line.c_str());
    if (!in.judged.empty()) std::printf("\n");
    if (o.deployment.empty()) print_placed(done.first, in, o);
    if (o.explain && o.system == "epara") print_quality(in);
    print(h, in.services);
  }
  files.commit();
  return h.result.ok() ? 0 : 1;
}

}  // namespace cli
