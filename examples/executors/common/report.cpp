// SPDX-License-Identifier: BSL-1.0
#include "report.hpp"

#include <cstdio>
#include <utility>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/drop.hpp>
#include <range/v3/view/transform.hpp>

#include <hetplan/io/json_text.hpp>

#include "profile.hpp"

namespace executors {

double run_report::measured_s() const {
  return median(iterations | ranges::views::drop(1) | ranges::views::transform(&iteration_record::seconds) | ranges::to<std::vector>());
}

std::string report_json(const run_report& r) {
  using hetplan::io::json, hetplan::io::put;
  json o;
  o["executor"] = r.executor;
  o["network"] = r.network;
  o["plan"] = r.plan;
  put(o, "predicted", r.predicted_s);
  o["iterations"] = json::array();
  for (const iteration_record& i : r.iterations | ranges::views::drop(1)) o["iterations"].push_back(hetplan::io::json_number(i.seconds));
  put(o, "measured", r.measured_s());
  o["losses"] = json::array();
  for (const iteration_record& i : r.iterations) o["losses"].push_back(i.loss);
  o["paced"] = r.paced;
  o["slow"] = r.slow;
  o["overruns"] = r.overruns;
  o["recoveries"] = json::array();
  for (const recovery& x : r.recoveries) {
    json one;
    one["lost"] = x.lost;
    one["iteration"] = x.iteration;
    put(one, "noticed", x.noticed_s);
    put(one, "replanned", x.replanned_s);
    put(one, "moved", x.moved_s);
    put(one, "moved_bytes", x.moved_bytes);
    put(one, "predicted", x.predicted_s);
    o["recoveries"].push_back(std::move(one));
  }
  if (r.difference) o["difference"] = *r.difference;
  return hetplan::io::json_text(o);
}

std::string report_text(const run_report& r) {
  char line[256];
  std::string text;
  const auto add = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    text += line;
  };
  add("%s  %s  %s\n", r.executor.c_str(), r.network.c_str(), r.plan.c_str());
  add("  predicted %9.4f s an iteration\n", r.predicted_s);
  add("  measured  %9.4f s (%+.1f %%), median of %zu%s\n", r.measured_s(), 100 * (r.measured_s() / r.predicted_s - 1),
      r.iterations.size() - 1, r.paced ? (", slower devices " + r.slow).c_str() : ", not paced");
  add("  loss      %9.6f, then %.6f\n", r.iterations.front().loss, r.iterations.back().loss);
  if (r.overruns > 0) add("  %d tasks lasted longer than their pace\n", r.overruns);
  for (const recovery& x : r.recoveries) {
    add("  lost %s in iteration %d: noticed after %.2f s, a new plan in %.3f s, %.1f kB moved in %.2f s; predicted then %.4f s\n",
        x.lost.c_str(), x.iteration, x.noticed_s, x.replanned_s, 1e-3 * x.moved_bytes, x.moved_s, x.predicted_s);
  }
  if (r.difference) add("  largest difference from training on one device: %.1e\n", *r.difference);
  return text;
}

}  // namespace executors
