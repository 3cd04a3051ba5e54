// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/transfer_priority.hpp>

#include <utility>

#include <hetplan/simulate/simulator.hpp>
#include <hetplan/tasks/expand.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE trace run(const cep_graph& cep, const network_schedule& s, const simulator_options& options) {
  if (s.is_prescribed()) return simulate(cep.tasks(), cep.network(), s.rates, options);
  if (s.sharing_policy == sharing::fair_share) return simulate(cep.tasks(), cep.network(), policy_of_plan{s.sharing_policy}, options);
  return simulate(cep.with(s.rules), cep.network(), policy_of_plan{s.sharing_policy}, options);
}

HETPLAN_INLINE network_schedule follow(const cep_graph& cep, message_rules rules) {
  network_schedule s{.sharing_policy = sharing::priority, .rules = std::move(rules), .bound = cep.bound(), .steps = 1};
  s.latency = run(cep, s).latency;
  s.gap = gap_of(s);
  return s;
}

HETPLAN_INLINE network_schedule uncontrolled(const cep_graph& cep) {
  network_schedule s{.bound = cep.bound(), .steps = 1};
  s.latency = run(cep, s).latency;
  s.gap = gap_of(s);
  return s;
}

HETPLAN_INLINE plan apply(plan p, const cep_graph& cep, const network_schedule& s) {
  if (s.is_prescribed()) throw invalid_input("apply: the schedule has a solver's rates, which no plan can carry; expected rules");
  p.sharing_policy = s.sharing_policy;
  p.schedule.transfers = cep.transfer_rules(s.rules);
  return p;
}

}  // namespace hetplan::schedule
