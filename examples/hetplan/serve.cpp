// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <hetplan/core/error.hpp>
#include <hetplan/draw/serving_report.hpp>
#include <hetplan/exchange/requests_file.hpp>
#include <hetplan/io/cloud_json.hpp>
#include <hetplan/io/deployment_json.hpp>
#include <hetplan/io/faults_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/requests_csv.hpp>
#include <hetplan/io/services_json.hpp>
#include <hetplan/io/serving_results_json.hpp>
#include <hetplan/serve/fixed_placement.hpp>
#include <hetplan/serve/offload_by_idle_goodput.hpp>
#include <hetplan/serve/serve_requests.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

/// Draws how many requests have been handled; on a terminal only.
class serving_progress_line {
 public:
  explicit serving_progress_line(const common_options& options) : visible_(!options.quiet && isatty(STDERR_FILENO) != 0) {}
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
  std::printf("\n%llu requests in %s: %.2f %% of what was asked, %.4g a second; passed on %.3f times each\n",
              static_cast<unsigned long long>(h.requests()), readable(h.duration).c_str(), 100 * h.attainment(), h.goodput_per_s(),
              h.mean_offloads());
  for (std::size_t k = 0; k < serve::request_outcomes; ++k) {
    const auto o = static_cast<serve::request_outcome>(k);
    if (o == serve::request_outcome::served || h.count(o) == 0) continue;
    std::printf("  %-18s %llu\n", std::string(to_string(o)).c_str(), static_cast<unsigned long long>(h.count(o)));
  }
  if (!h.result.ok()) std::printf("%s: %s\n", std::string(to_string(h.result.result)).c_str(), h.result.reason.c_str());
}

serve::request_stream read_requests(const serve_options& o, const serve::edge_cloud& cloud, const std::vector<serve::service>& services) {
  auto file =
      exchange::read_requests_file(o.requests, cloud, services, {.service = o.trace_service, .time_scale = o.time_scale.value_or(1)});
  if (!file.trace && (!o.trace_service.empty() || o.time_scale))
    throw invalid_input("--trace-service and --time-scale: expected a trace of another project, got requests in " + escaped(o.requests));
  if (file.skipped > 0) warn(o.requests + ": requests that got no token, left out: " + std::to_string(file.skipped));
  return std::move(file.requests);
}

}  // namespace

int serve_requests(const common_options& options, const serve_options& o) {
  require_no_model_options(options, "hetplan serve");
  const auto cloud = io::read_cloud(io::json_document::load(o.cloud));
  const auto services = io::read_services(io::json_document::load(o.services));
  const serve::any_service_time times(services.times);
  const auto requests = read_requests(o, cloud, services.services);
  outputs files({{"--records", o.records}, {"--html", o.html}}, {o.cloud, o.services, o.requests, o.deployment, o.faults});

  const auto deployments = io::read_deployment(io::json_document::load(o.deployment), cloud, services.services, times);
  serve::serving_options run;
  if (!o.faults.empty()) run.faults = io::read_faults(io::json_document::load(o.faults), cloud);
  if (!o.records.empty()) run.detail = serve::history_detail::records;
  if (!deployments.at.empty()) {
    auto in_turn = deployments.changes;
    in_turn.insert(in_turn.begin(), deployments.first);
    run.changes = {.at = deployments.at, .policy = serve::fixed_placement(std::move(in_turn))};
  }
  serve::offload_by_idle_goodput handler{&services.services, static_cast<std::uint64_t>(o.seed), o.offloads};
  const auto h = [&] {
    serving_progress_line line(options);
    return serve::serve_requests(cloud, services.services, times, requests, deployments.first, handler, run, line);
  }();
  if (!o.records.empty()) files.put(o.records, io::write_records(h.records, cloud));
  if (!o.html.empty()) files.put(o.html, draw::serving_report_html(h, cloud, services.services, deployments.first, run));
  if (options.json) {
    std::cout << io::write_history(h, cloud, services.services);
  } else {
    print(h, services.services);
  }
  files.commit();
  return h.result.ok() ? 0 : 1;
}

}  // namespace cli
