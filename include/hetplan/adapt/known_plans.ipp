// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/known_plans.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>

#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/mix/pareto_set.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE const plan_result* planning_memory::find(const std::vector<double>& moment) {
  const auto it = std::find_if(answers_.begin(), answers_.end(), [&](const answer& a) { return a.moment == moment; });
  if (it == answers_.end()) return nullptr;
  answers_.splice(answers_.begin(), answers_, it);
  return &it->result;
}

HETPLAN_INLINE const plan_result& planning_memory::keep(std::vector<double> moment, plan_result r) {
  ++plannings_;
  if (answers_.size() == most) answers_.pop_back();
  return answers_.emplace_front(answer{std::move(moment), std::move(r)}).result;
}

HETPLAN_INLINE replanning::replanning(const planning_problem& problem, any_planner planner, std::shared_ptr<planning_memory> memory)
    : problem_(&problem), planner_(std::move(planner)), memory_(memory ? std::move(memory) : std::make_shared<planning_memory>()) {}

HETPLAN_INLINE const plan_result& replanning::operator()(const conditions& noticed, std::span<const foreign_traffic> traffic,
                                                         const qoe_target& wanted) {
  return answer(rounded(offered(noticed, traffic, problem_->cluster.network()), problem_->cluster), wanted);
}

HETPLAN_INLINE const plan_result& replanning::answer(const conditions& now, const qoe_target& wanted) {
  std::vector<double> k{wanted.latency ? wanted.latency->value() : -1, wanted.deadline ? wanted.deadline->value() : -1,
                        wanted.iterations ? static_cast<double>(*wanted.iterations) : -1};
  for (std::size_t d = 0; d < now.speed.size(); ++d) k.push_back(now.present[d] != 0 ? now.speed[d] : -1);
  for (const bytes_per_second c : now.capacity) k.push_back(c.value());
  if (const plan_result* known = memory_->find(k)) return *known;
  return memory_->keep(std::move(k), plan_for(now, wanted));
}

HETPLAN_INLINE plan_result replanning::plan_for(const conditions& now, const qoe_target& wanted) {
  const auto devices = problem_->cluster.devices();
  if (std::none_of(devices.begin(), devices.end(), [&](const device& d) { return now.works(d.id); })) {
    plan_result none;
    none.status = {outcome::infeasible, "no device works", infeasibility_proof{.of = "plans", .rows = {{"devices that work", 1, 0}}}};
    return none;
  }
  const present_problem there(*problem_, now, wanted);
  planning_problem asked = *there;
  asked.job.split_tensors = false;  // moves between grids are not defined, nor between sharded weights
  asked.job.memory_savers.shard_state = false;
  asked.with_bounds = false;  // bounds are not needed, and take as long as parts of the search
  conditions usual = now;
  usual.capacity = nominal(problem_->cluster).capacity;
  const auto outside = [&](plan_result r) {
    for (const ranked_plan& x : r.plans) detail::check_plan_of_policy(x.plan, asked, "any_planner: ");
    return there.outside(std::move(r));
  };
  if (!planner_.uses_known_plans() || usual == now) return outside(planner_(asked));
  std::vector<plan> known;
  for (const ranked_plan& r : answer(usual, wanted).plans) known.push_back(there.inside(r.plan));
  return outside(known.empty() ? planner_(asked) : planner_(asked, known));
}

HETPLAN_INLINE policy_options checked_options(policy_options o, const char* who) {
  const auto require = [who](bool ok, const char* option, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string(who) + ": " + option + " = " + to_text(given) + "; expected " + expected);
  };
  require(std::isfinite(o.small) && o.small >= 0, "small", o.small, "a finite number >= 0");
  require(std::isfinite(o.ignore) && o.ignore >= 0, "ignore", o.ignore, "a finite number >= 0");
  require(o.most_plans >= 1, "most_plans", static_cast<double>(o.most_plans), "at least 1");
  return o;
}

HETPLAN_INLINE double plan_menu::rounded(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 20)), exponent - 20);
}

HETPLAN_INLINE plan_result plan_menu::operator()(const planning_problem& problem) const {
  plan_result all;
  const auto ask = [&](objective_kind kind, std::optional<seconds> latency) {
    planning_problem wanted = problem;
    wanted.job.objective = kind;
    wanted.job.qoe.latency = latency;
    plan_result r = planner(wanted);
    all.candidates += r.candidates;
    all.elapsed += r.elapsed;
    if (r.plans.empty() && all.plans.empty()) {
      all.status = r.status;
      all.binding = r.binding;
    }
    for (ranked_plan& p : r.plans) all.plans.push_back(std::move(p));
  };
  ask(objective_kind::latency, std::nullopt);
  if (all.plans.empty()) return all;
  const double fastest = all.plans.front().evaluation.response().value();
  const qoe_target& qoe = problem.job.qoe;
  const double whole_s = qoe.iterations ? all.plans.front().evaluation.latency.value() * static_cast<double>(*qoe.iterations) : 0;
  if (!qoe.deadline || at_most(whole_s, qoe.deadline->value())) {
    const std::size_t from = all.plans.size();
    ask(objective_kind::energy, std::nullopt);
    const double frugal = all.plans.size() > from ? all.plans[from].evaluation.response().value() : fastest;
    for (int i = 1; i <= between && frugal > fastest; ++i) {
      ask(objective_kind::qoe, seconds(rounded(fastest * std::pow(frugal / fastest, static_cast<double>(i) / (between + 1)))));
    }
  }
  std::vector<ranked_plan> kept;
  const auto front = mix::pareto_plans(all.plans, mix::response_time{}, mix::total_energy{});
  for (const auto& entry : front.entries()) kept.push_back(all.plans[entry.item]);
  all.plans = std::move(kept);
  all.status = {};
  all.binding.reset();
  return all;
}

HETPLAN_INLINE std::optional<plan> reschedule(const planning_problem& problem, const plan& p, const conditions& noticed,
                                              std::span<const foreign_traffic> traffic, const qoe_target& wanted,
                                              const schedule::refine_options& options) {
  for (const stage& s : p.stages) {
    for (const assignment& a : s.devices) {
      if (!noticed.works(a.device)) return std::nullopt;
    }
  }
  const tasks::task_graph work = tasks::expand(stage_costs(problem, p));
  for (const tasks::transfer& t : work.transfers) {
    if (t.kind == transfer_kind::read) continue;
    if (!is_open(problem.cluster.network().find(t.from, t.to), noticed)) return std::nullopt;
  }
  const present_problem there(problem, offered(noticed, traffic, problem.cluster.network()), wanted);
  const plan inside[] = {there.inside(p)};
  plan_result r = schedule::refine(*there, objective_of_job(there->job), std::span<const plan>(inside), 1, options);
  if (r.plans.empty()) return std::nullopt;
  return there.outside(std::move(r.plans.front().plan));
}

HETPLAN_INLINE std::size_t known_plans::add(plan p) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].runner.what() == p) return touch(i);
  }
  all_.push_back({plan_runner(*problem_, std::move(p)), {}, {}, 0});
  return touch(all_.size() - 1);
}

HETPLAN_INLINE std::size_t known_plans::touch(std::size_t i) {
  all_[i].used = ++uses_;
  return i;
}

HETPLAN_INLINE bool known_plans::forget(std::size_t most) {
  if (all_.size() <= most) return false;
  auto uses = all_ | ranges::views::transform(&entry::used) | ranges::to<std::vector>();
  std::nth_element(uses.begin(), uses.end() - static_cast<std::ptrdiff_t>(most), uses.end());
  const long long oldest = uses[uses.size() - most];
  std::vector<std::optional<std::size_t>> now(all_.size());
  std::size_t left = 0;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].used >= oldest) now[i] = left++;
  }
  std::erase_if(all_, [&](const entry& e) { return e.used < oldest; });
  for (entry& e : all_) {
    std::erase_if(e.scheduled, [&](const auto& found) { return found.second && !now[*found.second]; });
    for (auto& [moment, found] : e.scheduled) {
      if (found) found = now[*found];
    }
  }
  return true;
}

HETPLAN_INLINE std::optional<std::size_t> known_plans::reschedule(std::size_t i, const conditions& now,
                                                                  std::span<const foreign_traffic> traffic, const qoe_target& wanted,
                                                                  const schedule::refine_options& options) {
  std::vector<double> k = conditions_of(i, offered(now, traffic, problem_->cluster.network()));
  k.push_back(wanted.latency ? wanted.latency->value() : -1);
  const auto it = all_[i].scheduled.find(k);
  if (it != all_[i].scheduled.end()) return it->second;
  std::optional<std::size_t> found;
  if (auto p = adapt::reschedule(*problem_, all_[i].runner.what(), now, traffic, wanted, options)) {
    const std::size_t before = size();
    found = add(std::move(*p));
    if (*found == before) all_[*found].used -= never_used;  // specific to these conditions: forgotten first, unless it is useful
  }
  if (all_[i].scheduled.size() >= most_remembered) all_[i].scheduled.clear();
  all_[i].scheduled.emplace(std::move(k), found);
  return found;
}

HETPLAN_INLINE std::size_t known_plans::remembered() const {
  std::size_t sum = 0;
  for (const entry& e : all_) sum += e.seen.size() + e.scheduled.size();
  return sum;
}

HETPLAN_INLINE std::optional<std::size_t> known_plans::best(const goal& wanted, const conditions& now,
                                                            std::span<const foreign_traffic> traffic,
                                                            std::optional<std::span<const ranked_plan>> among) {
  std::optional<std::size_t> found;
  serving least;
  const auto offer = [&](std::size_t i) {
    const iteration each = try_out(i, now, traffic);
    const serving x = wanted.of(each);
    if (!each.ended || (found && !x.beats(least))) return;
    found = i;
    least = x;
  };
  if (among) {
    for (const ranked_plan& r : *among) offer(add(r.plan));
  } else {
    for (std::size_t i = 0; i < size(); ++i) offer(i);
  }
  if (found) touch(*found);
  return found;
}

HETPLAN_INLINE serving known_plans::serves(const goal& wanted, std::size_t i, const conditions& now,
                                           std::span<const foreign_traffic> traffic) {
  return wanted.of(try_out(i, now, traffic));
}

HETPLAN_INLINE iteration known_plans::try_out(std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic) {
  entry& e = all_[i];
  if (!traffic.empty()) return e.runner.rehearse(now, traffic);
  if (e.seen.size() >= most_remembered) e.seen.clear();
  auto [it, is_new] = e.seen.try_emplace(conditions_of(i, now));
  if (is_new) it->second = e.runner.rehearse(now);
  return it->second;
}

HETPLAN_INLINE std::vector<double> known_plans::conditions_of(std::size_t i, const conditions& now) const {
  std::vector<double> k;
  for (const device_id d : devices(i)) k.push_back(now.present[d.index()] != 0 ? now.speed[d.index()] : -1);
  for (const bytes_per_second c : now.capacity) k.push_back(c.value());
  return k;
}

HETPLAN_INLINE std::optional<reaction> reorder_transfers(const planning_problem& problem, known_plans& known, const situation& s,
                                                         const policy_options& options) {
  if (s.running == nullptr) throw invalid_input("reorder_transfers: no plan runs; expected one in situation::running");
  const std::size_t running = known.add(*s.running);
  const auto scheduled = known.reschedule(running, s.noticed, s.traffic, s.wanted, options.network);
  if (!scheduled) return std::nullopt;
  const goal wanted(problem.job, s);
  const auto serves = [&](std::size_t i) { return known.serves(wanted, i, s.noticed, s.traffic); };
  if (!serves(*scheduled).beats(serves(running))) return std::nullopt;
  return reaction{
      .next = known[*scheduled], .reached = rung::network, .thinking = options.thinking.reschedule, .reason = "transfers in another order"};
}

}  // namespace hetplan::adapt
