// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/transfer_scheduler.hpp>

#include <algorithm>
#include <string>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::schedule {

HETPLAN_INLINE network_schedule searched_transfers::operator()(const cep_graph& cep, const scheduling_limits& limits) const {
  constexpr double optimal = 1e-9;
  // A run with rules of its own takes about twice the work of one without, a solve ten times, and what its rows take.
  const auto nodes = static_cast<long long>(cep.tasks().size()), of_run = 2 * std::max(1LL, nodes), of_solve = 10 * nodes + 10'000;
  local_search_options within = search;
  within.steps = std::min(within.steps, std::max(1LL, limits.steps / of_run));
  if (limits.time_limit) within.time_limit = std::min(*limits.time_limit, within.time_limit.value_or(*limits.time_limit));
  network_schedule best = local_search(cep, within);
  best.work = best.steps * of_run;
  const auto out_of_steps = [&] {
    best.out_of_steps = true;
    best.status = {outcome::stopped, "transfers: stopped by the limit of " + std::to_string(limits.steps) + " steps"};
    return best;
  };
  if (best.gap <= optimal || !best.status.ok()) return best;
  if (best.steps >= within.steps && within.steps < search.steps) return out_of_steps();
  const bool whole = std::all_of(best.rules.begin(), best.rules.end(), [](const auto& chunks) { return chunks.size() == 1; });
  if (!limits.lp.exists() || !whole || orders.solves < 1) return best;
  if (static_cast<long long>(cep.tasks().transfers.size()) > transfers_per_solve * orders.solves) return best;
  order_search_options few = orders;
  few.solves = std::min(few.solves, (limits.steps - best.work) / of_solve);
  if (few.solves < 1) return out_of_steps();
  const order_search_result solved = order_search(cep, best, limits.lp, few);
  best.work += solved.schedule.steps * of_solve;
  if (solved.order.empty()) return best;
  network_schedule followed = follow(cep, rules_of_sequence(cep.messages(), sequence_of_order(cep, solved.order)));
  const long long steps = best.steps + solved.schedule.steps + followed.steps, work = best.work + of_run;
  if (followed.latency < best.latency) best = std::move(followed);
  best.steps = steps;
  best.work = work;
  return best;
}

HETPLAN_INLINE network_schedule any_transfer_scheduler::operator()(const cep_graph& cep, const scheduling_limits& limits) const {
  network_schedule s = schedule_(cep, limits);
  if (s.is_prescribed())
    throw invalid_model("transfer scheduler: the schedule has a solver's rates, which devices cannot follow; expected rules");
  if (std::ranges::find(all_sharings, s.sharing_policy) == all_sharings.end())
    throw invalid_model("transfer scheduler: sharing_policy = " + std::to_string(static_cast<int>(s.sharing_policy)) +
                        "; expected a sharing with a name");
  if (s.sharing_policy != sharing::fair_share) s.rules = checked(std::move(s.rules), cep, "transfer scheduler");
  return s;
}

}  // namespace HETPLAN_NAMESPACE::schedule
