// SPDX-License-Identifier: BSL-1.0
#include "serve_warnings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <variant>

#include <hetplan/io/json_document.hpp>

#include "commands.hpp"

namespace cli {

using namespace hetplan;

void warn_of_kinds(const serve::edge_cloud& cloud, const std::vector<serve::service>& services) {
  std::set<std::string_view> kinds;
  for (const auto& s : cloud.servers) {
    for (const auto& g : s.gpus) kinds.insert(g.kind);
    for (const auto& d : s.devices) kinds.insert(d.unit.kind);
  }
  for (const auto& s : services) {
    for (const auto& v : s.variants) {
      const std::string meant = kinds.contains(v.gpu_kind) ? "" : io::suggestion(v.gpu_kind, kinds);
      if (!meant.empty())
        warn("service " + io::in_quotes(s.name) + ": variant " + io::in_quotes(v.name) + " is for GPUs of kind " +
             io::in_quotes(v.gpu_kind) + ", of which cloud " + io::in_quotes(cloud.name) + " has none" + meant);
    }
  }
}

void warn_of_long_requests(const std::vector<serve::service>& services, const serve::request_stream& requests) {
  struct over {
    double most = 0;  ///< tokens in the largest cache
    double longest = 0;
    std::size_t count = 0;
  };
  std::vector<over> found(services.size());
  for (std::size_t l = 0; l < services.size(); ++l) {
    for (const auto& v : services[l].variants)
      found[l].most =
          v.cache_tokens == 0 ? std::numeric_limits<double>::infinity() : std::max(found[l].most, static_cast<double>(v.cache_tokens));
  }
  for (const auto& r : requests) {
    auto& f = found[r.service.index()];
    const double tokens = static_cast<double>(r.tokens_in) + static_cast<double>(r.length);
    if (tokens <= f.most) continue;
    f.longest = std::max(f.longest, tokens);
    ++f.count;
  }
  for (std::size_t l = 0; l < services.size(); ++l) {
    const auto& f = found[l];
    if (f.count > 0)
      warn("service " + io::in_quotes(services[l].name) + ": " + std::to_string(f.count) +
           " requests are longer than the largest cache, up to " + to_text(f.longest) + " of " + to_text(f.most) +
           " tokens: nobody serves them");
  }
}

void warn_of_unplaced(const serve::deployment& first, const std::vector<serve::service>& services, const serve::request_stream& requests) {
  std::vector<bool> stands(services.size());
  for (const auto& i : first.instances) stands[i.what.index()] = true;
  for (const auto& r : requests) {
    if (stands[r.service.index()]) continue;
    stands[r.service.index()] = true;  // warns once
    warn("service " + io::in_quotes(services[r.service.index()].name) + ": requested, and no instance of it was placed at first");
  }
}

namespace {

/// Returns the first change of the deployment from a time on [s], in a run that began at `begin`; infinity if there is none.
double next_change_s(const serve::serving_options& run, seconds begin, seconds from) {
  if (const double cycle_s = run.changes.cycle.value(); cycle_s > 0)
    return begin.value() + std::max(1.0, std::ceil((from - begin).value() / cycle_s)) * cycle_s;
  const auto next = std::ranges::find_if(run.changes.at, [&](seconds at) { return at >= from; });
  return next == run.changes.at.end() ? std::numeric_limits<double>::infinity() : next->value();
}

}  // namespace

void warn_of_the_end(const std::string& deployment, const std::string& faults, const serve::serving_options& run, seconds begin,
                     seconds duration) {
  const seconds end = begin + duration;
  const std::string over = "the last request has ended at " + to_text(end.value()) + " s";
  const auto& at = run.changes.at;
  const auto late = std::ranges::find_if(at, [&](seconds each) { return each > end; });
  if (late != at.end())
    warn(deployment + ": /changes/" + std::to_string(late - at.begin()) + ": " + over + "; not used, nor is what follows");
  if (run.changes.cycle > duration) warn("--cycle: " + over + "; not used");
  for (std::size_t i = 0; i < run.faults.size(); ++i) {
    const serve::serving_fault& f = run.faults[i];
    const std::string where = faults + ": /events/" + std::to_string(i) + ": ";
    if (f.at > end) {
      warn(where + over + "; not used, nor is what follows");
      return;
    }
    const char* would = std::holds_alternative<serve::server_joins>(f.what)       ? "the server is absent, and would join"
                        : std::holds_alternative<serve::server_leaves>(f.what)    ? "the server would leave"
                        : std::holds_alternative<serve::device_registers>(f.what) ? "the device is absent before, and would be used"
                                                                                  : nullptr;
    if (would != nullptr && next_change_s(run, begin, f.at) > end.value())
      warn(where + would + " with a change of the deployment, and none comes" +
           (std::holds_alternative<serve::server_leaves>(f.what) ? "; not used" : ""));
  }
}

}  // namespace cli
