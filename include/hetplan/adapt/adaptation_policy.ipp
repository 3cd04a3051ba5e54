// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/adaptation_policy.hpp>

#include <cstddef>

#include <hetplan/plan/validate.hpp>

namespace hetplan::adapt {

namespace detail {

HETPLAN_INLINE void check_plan_of_policy(const plan& p, const planning_problem& problem, const std::string& who) {
  const auto fail = [&](const std::string& what) {
    throw invalid_input(who + "the plan of planner \"" + escaped(p.planner) + "\": " + what);
  };
  const auto expect = [&](const char* field, auto given, auto expected) {
    if (given == expected) return;
    const auto text = [](auto v) {
      if constexpr (requires { to_string(v); }) return std::string(to_string(v));
      else return to_text(static_cast<double>(v));
    };
    fail(std::string(field) + ": expected that of the job, " + text(expected) + ", got " + text(given));
  };
  const auto expect_name = [&](const char* field, const std::string& given, const std::string& expected) {
    if (!given.empty() && given != expected)  // plans made by hand may leave names empty
      fail(std::string(field) + ": expected that of the problem, \"" + escaped(expected) + "\", got \"" + escaped(given) + "\"");
  };
  expect_name("/model", p.model, problem.model.name());
  expect_name("/cluster", p.cluster, problem.cluster.name());
  const workload& wanted = problem.job.workload;
  expect("/workload/mode", p.workload.mode, wanted.mode);
  if (wanted.mode == mode::training) {
    const auto name_of = [](const workload& w) { return w.optimizer ? std::string(to_string(*w.optimizer)) : "none"; };
    if (p.workload.optimizer != wanted.optimizer)
      fail("/workload/optimizer: expected that of the job, " + name_of(wanted) + ", got " + name_of(p.workload));
    if (!wanted.optimizer) expect("/workload/optimizer_factor", p.workload.optimizer_factor, wanted.optimizer_factor);
  }
  if (wanted.mode == mode::generation) expect("/workload/tokens", p.workload.tokens, wanted.tokens);
  expect("/workload/context", p.workload.context, wanted.context);
  expect("/workload/prompt", p.workload.prompt.value_or(-1), wanted.prompt.value_or(-1));
  expect("/workload/prompt_chunk", p.workload.prompt_chunk, wanted.prompt_chunk);
  expect("/workload/chunks_in_flight", p.workload.chunks_in_flight, wanted.chunks_in_flight);
  if (const auto v = validate(p, problem.model, problem.cluster)) fail(v->where + ": " + v->what);
  for (const stage& s : p.stages) {
    if (const std::string more = beyond_plain(s, true); !more.empty())
      fail("stage \"" + escaped(s.name) + "\" is " + more +
           "; what moves when such a plan changes is not known: expected stages that share microbatches by samples alone");
  }
  expect("samples of an iteration", p.batch(), static_cast<long long>(problem.job.batch));
  for (std::size_t i = 0; i < p.schedule.transfers.size(); ++i) {
    const seconds release = p.schedule.transfers[i].release;
    if (!(release <= longest_timeline))
      fail("/schedule/flows/" + std::to_string(i) + "/release: expected at most " + to_text(longest_timeline.value()) + " s, got " +
           to_text(release.value()) + " s");
  }
}

}  // namespace detail

HETPLAN_INLINE void check_reaction(const reaction& r, const planning_problem& problem, seconds now) {
  const std::string who = "adaptation policy: its answer at " + to_text(now.value()) + " s: ";
  const auto require = [&](bool ok, const char* member, double given, const std::string& expected) {
    if (!ok) throw invalid_model(who + member + " = " + to_text(given) + "; expected " + expected);
  };
  const seconds most = longest_timeline;
  require(r.thinking >= seconds{} && r.thinking <= most, "thinking", r.thinking.value(), "seconds from 0 to " + to_text(most.value()));
  if (r.ask_again)
    require(*r.ask_again >= seconds{} && *r.ask_again <= now + most, "ask_again", r.ask_again->value(),
            "a time of the timeline, at most " + to_text(most.value()) + " s from now");
  if (r.answers) require(*r.answers >= seconds{} && *r.answers <= now, "answers", r.answers->value(), "a time from 0 s until now");
  require(r.how >= switching::delta && r.how <= switching::at_no_cost, "how", static_cast<double>(r.how), "a way of switching");
  require(r.reached >= rung::none && r.reached <= rung::replanned, "reached", static_cast<double>(r.reached), "a step of the ladder");
  if (r.next) detail::check_plan_of_policy(*r.next, problem, who);
}

}  // namespace hetplan::adapt
