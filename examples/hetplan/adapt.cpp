// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/adapt/ladder.hpp>
#include <hetplan/adapt/microbatch_adapter.hpp>
#include <hetplan/adapt/run.hpp>
#include <hetplan/draw/adaptation_report.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/results_json.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/io/unused_fields.hpp>
#include <hetplan/recipes/dora_adapter.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

/// Draws the progress of a policy's timeline, on a terminal only.
class timeline_progress {
 public:
  timeline_progress(const common_options& options, const std::string& policy) : policy_(policy), visible_(shows_progress(options)) {}
  ~timeline_progress() {
    if (visible_) std::fprintf(stderr, "\r\033[K");
  }
  timeline_progress(const timeline_progress&) = delete;
  timeline_progress& operator=(const timeline_progress&) = delete;

  control operator()(const adapt::run_progress& l) {
    const int percent = static_cast<int>(100 * (l.now / l.duration));
    if (!visible_ || percent == drawn_) return control::go;
    drawn_ = percent;
    std::fprintf(stderr, "\r\033[K%-20s %3d %%, %lld iterations", policy_.c_str(), percent, l.so_far.iterations);
    std::fflush(stderr);
    return control::go;
  }

 private:
  const std::string& policy_;
  bool visible_;
  int drawn_ = -1;
};

bool somebody_leaves(const adapt::timeline& t) {
  return std::any_of(t.events.begin(), t.events.end(),
                     [](const adapt::event& e) { return std::holds_alternative<adapt::device_leaves>(e.what); });
}

/// Returns the plan for a world without changes: with a deadline, the most frugal plan that ends in time, else the planner's best.
template <class Planner>
std::optional<hetplan::plan> best_single(const problem& p, const Planner& planner, std::shared_ptr<adapt::planning_memory> memory,
                                         status& why_not) {
  const plan_result& found = adapt::replanning(p, planner, std::move(memory))(adapt::nominal(p.cluster), {}, p.job.qoe);
  why_not = found.status;
  adapt::known_plans known(p);
  const auto best = known.best(adapt::goal(p.job, p.job.qoe, {}, 0), adapt::nominal(p.cluster), {}, found.plans);
  if (!best) return std::nullopt;
  return known[*best];
}

/// Returns a menu of plans if there is a deadline, else Dora's best plan.
struct planner_of_job {
  recipes::dora_planner dora;

  static bool ends(const problem& q) { return q.job.qoe.deadline && q.job.qoe.iterations; }
  plan_result operator()(const problem& q) const { return ends(q) ? adapt::plan_menu{dora}(q) : dora(q); }
  plan_result operator()(const problem& q, std::span<const hetplan::plan> known) const {
    return ends(q) ? adapt::plan_menu{dora}(q) : dora(q, known);
  }
};

/// Returns the reason why no run over the timeline has made a backup; "" if one has.
std::string why_no_backup(const std::vector<io::policy_history>& rows, const problem& p, const adapt::backup_routine& routine) {
  bool any = false;
  for (const io::policy_history& row : rows) {
    const auto copies = [&](const hetplan::plan& each) {
      return !adapt::replicate_by_topology(each, p.model, p.cluster, routine.content, p.models.memory).backups.empty();
    };
    if (std::none_of(row.history.plans.begin(), row.history.plans.end(), copies)) continue;
    if (row.history.iterations + row.history.lost >= routine.period) return {};
    any = true;
  }
  if (any) return "no policy comes to " + std::to_string(routine.period) + " iterations";
  return "no plan that ran has both something to back up and another device with a way and room for it";
}

void print(const std::vector<io::policy_history>& rows, const adapt::timeline& t) {
  std::printf("%-20s %10s %12s %10s %12s %10s %8s %10s %10s\n", "policy", "iterations", "each", "violations", "energy", "stall", "switches",
              "moved", "reaction");
  for (const io::policy_history& row : rows) {
    const adapt::history& h = row.history;
    const double lasted = h.finished_s.value_or(t.duration.value());
    std::printf("%-20s %10lld %12s %10lld %12s %10s %8lld %10s %10s", row.policy.c_str(), h.iterations,
                h.iterations > 0 ? readable(seconds(lasted / static_cast<double>(h.iterations))).c_str() : "-", h.violations,
                readable(joules(h.energy_J)).c_str(), readable(seconds(h.stall_s)).c_str(), h.switches,
                readable(bytes(h.moved_bytes)).c_str(), readable(seconds(h.reaction_s)).c_str());
    if (h.finished_s)
      std::printf("   done at %s%s", readable(seconds(*h.finished_s)).c_str(), h.missed_deadline ? ", after the deadline" : "");
    else if (h.missed_deadline) std::printf("   missed the deadline");
    if (h.lost > 0) std::printf("   %lld done again", h.lost);
    if (!h.status.ok()) std::printf("   %s: %s", std::string(to_string(h.status.result)).c_str(), escaped(h.status.reason).c_str());
    std::printf("\n");
  }
}

}  // namespace

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"static",        "network-only", "microbatches",       "dora",
                                              "replan-always", "replay",       "heavy-rescheduling", "oracle"};
  return names;
}

int adapt(const common_options& options, const adapt_options& o) {
  const planning_graph model = load_model(options, o.model);
  const cluster devices = load_cluster(o.cluster);
  const io::json_document document = io::json_document::load(o.timeline);
  const adapt::timeline t = io::read_timeline(document, devices);
  const auto asks = [&](auto&& what) {
    return std::any_of(t.events.begin(), t.events.end(), [&](const adapt::event& e) {
      const auto* q = std::get_if<adapt::qoe_becomes>(&e.what);
      return q != nullptr && what(*q);
    });
  };
  job wanted = load_job(o.job, {.over_time = true, .latency_may_come = asks([](const auto& q) { return q.latency.has_value(); })});
  wanted.split_tensors = false;  // plans that move stages have no grids
  const auto warn_of_timeline = [&](bool priorities) {
    for (const std::string& line : io::unused_timeline_fields(io::json_node(document), devices, wanted, priorities)) warn(line);
  };
  warn_of_timeline(true);
  check_pair(model, devices, o.cluster, wanted.workload);
  check_pins(o.job, wanted, model, devices);
  std::vector<std::string> read = io::trace_files(document);
  read.insert(read.end(), {o.model, o.cluster, o.job, o.timeline});
  outputs files({{"--html", o.html}, {"--svg", o.svg}}, read);
  const std::string dora = "dora";  // plans for all policies
  for (const std::string& line : unused_options(options, {&dora, 1}, false)) warn(line);
  std::vector<std::string> names = o.policies;
  require_each_once("--policies", names);
  if (names.empty()) names = {"static", "network-only", "dora", "replan-always", "oracle"};
  for (const std::string& name : names) {
    if (std::find(policy_names().begin(), policy_names().end(), name) != policy_names().end()) continue;
    throw invalid_input("--policies: expected some of " + io::joined(policy_names()) + ", got " + io::in_quotes(name) +
                        io::suggestion(name, policy_names()));
  }

  const problem p{model, devices, any_cost_model(profiled_or_roofline{}), wanted, {}, glpk_lp{}, options.budget};
  const recipes::dora_planner planner{.options = dora_options(options)};
  const planner_of_job any_planner{planner};
  const adapt::policy_options common{.memory = std::make_shared<adapt::planning_memory>()};  // shared: all policies use the same planner
  status why_not;
  const std::optional<hetplan::plan> first = best_single(p, any_planner, common.memory, why_not);
  const bool training = wanted.workload.mode == mode::training;
  if (o.backups && !training) warn("--backups: only training changes weights, so there is nothing to back up; not used");
  const long long period = training ? o.backups.value_or(somebody_leaves(t) ? 10 : 0) : 0;
  adapt::storage_options storage{.archive = adapt::elect_coordinator(devices, adapt::nominal(devices))};
  if (period > 0) storage.backups = adapt::backup_routine{.period = period};

  std::vector<io::policy_history> rows;
  bool any = false;
  for (const std::string& name : names) {
    timeline_progress bar(options, name);
    const auto run = [&](auto policy, const auto& detector) {
      return adapt::run(p, t, policy, adapt::run_options{detector, storage}, bar);
    };
    const adapt::heartbeat beats;
    adapt::history h;
    if (!first) h.status = why_not.ok() ? status{outcome::none_found, "no plan for the job's end"} : why_not;
    else if (name == "static") h = run(adapt::static_plan(*first), beats);
    else if (name == "network-only") h = run(adapt::network_only(p, *first), beats);
    else if (name == "microbatches") h = run(adapt::microbatch_adapter(p, *first), beats);
    else if (name == "dora")
      h = run(recipes::dora_adapter(p, {.planner = planner, .ladder = {.common = common}, .mixing = {.common = common}}), beats);
    else if (name == "replan-always") h = run(adapt::replan_always(p, any_planner, common), beats);
    else if (name == "replay") h = run(adapt::replay_policy(p, *first), beats);
    else if (name == "heavy-rescheduling") h = run(adapt::rescheduling_policy(p, *first, any_planner, common), beats);
    else h = run(adapt::oracle(p, any_planner, common), adapt::immediate{});
    any = any || (first && h.status.result != outcome::none_found);
    rows.push_back({name, std::move(h)});
  }
  const auto ranks = [](const hetplan::plan& each) { return each.sharing_policy == sharing::priority; };
  const auto ran_one = [&](const io::policy_history& row) {
    return std::any_of(row.history.plans.begin(), row.history.plans.end(), ranks);
  };
  warn_of_timeline(std::any_of(rows.begin(), rows.end(), ran_one));
  const std::string no_backup = storage.backups ? why_no_backup(rows, p, *storage.backups) : "";
  if (first && o.backups && !no_backup.empty()) warn("--backups: " + no_backup + "; not used");
  if (!o.svg.empty()) files.put(o.svg, draw::adaptation_svg(rows, t, model, devices, wanted.qoe));
  if (!o.html.empty()) files.put(o.html, draw::adaptation_report_html(rows, t, model, devices, wanted));
  if (options.json) {
    std::cout << io::write_histories(rows, model, devices);
  } else {
    if (period > 0 && no_backup.empty()) std::printf("backups: after every %lld iterations\n", period);
    print(rows, t);
  }
  files.commit();
  return any ? 0 : 1;
}

}  // namespace cli
