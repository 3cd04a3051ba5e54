// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/two_substate_dp.hpp>

#include <atomic>
#include <iterator>

#include <hetplan/core/sorting.hpp>

namespace hetplan::partition {

HETPLAN_INLINE void graph_tails::add_traffic(std::size_t first, std::size_t last, std::span<const tail> ports) {
  traffic_.assign(ports.size(), {});
  const auto& all = cuts_.crossings(last);
  for (std::size_t i = 0; i < all.size() && all[i].from >= first;) {
    const std::size_t tensor = all[i].tensor;
    most_.clear();
    for (; i < all.size() && all[i].tensor == tensor; ++i) {
      const std::size_t to = ports[all[i].port].twin;
      auto it = std::find_if(most_.begin(), most_.end(), [&](const crossing& x) { return x.port == to; });
      if (it == most_.end()) it = most_.insert(it, {.port = to});
      it->forward_bytes = std::max(it->forward_bytes, all[i].forward_bytes);
      it->gradient_bytes = std::max(it->gradient_bytes, all[i].gradient_bytes);
      it->first_bytes = std::max(it->first_bytes, all[i].first_bytes);
      it->later_bytes = std::max(it->later_bytes, all[i].later_bytes);
    }
    for (const crossing& x : most_) {
      traffic_to& f = traffic_[x.port];
      const crossing both[] = {f.bytes, x};
      f = {sum_of(both), true};
    }
  }
}

HETPLAN_INLINE std::span<const tail> graph_tails::extend(std::size_t first, std::size_t last, std::span<const tail> ports, tail mine) {
  const auto &before = cuts_.ports(last), &after = cuts_.ports(first);
  mine.twin = new_stage;
  tails_.clear();
  for (std::size_t i = 0, j = 0; i < after.size(); ++i) {
    tail t = mine;
    if (after[i] >= last) {
      while (before[j] != after[i]) ++j;
      t = ports[j];
      t.twin += old_stage;
    }
    tails_.push_back(t);
  }
  for (std::size_t i = 0; i < tails_.size(); ++i) {  // number the twins by the new ports
    if (tails_[i].twin < new_stage) continue;
    const std::uint32_t stage = tails_[i].twin;
    for (std::size_t j = i; j < tails_.size(); ++j) {
      if (tails_[j].twin == stage) tails_[j].twin = static_cast<std::uint32_t>(i);
    }
  }
  return tails_;
}

}  // namespace hetplan::partition

namespace hetplan::partition::detail {

HETPLAN_INLINE std::vector<std::size_t> even_boundaries(const search_tables& t, std::size_t wanted) {
  const std::size_t n = t.sequence.size();
  std::vector<std::size_t> chosen;
  const double* work = t.table.totals(t.classes.front().front(), t.table.max_share());
  double next = 0;
  for (std::size_t b = 0; b <= n; ++b) {
    const bool end = b == n || std::binary_search(t.sequence.chain_first.begin(), t.sequence.chain_first.end(), b);
    if (!end && work[b] < next) continue;
    chosen.push_back(b);
    next = work[b] + work[n] / static_cast<double>(wanted);
  }
  return chosen;
}

HETPLAN_INLINE search_options checked_options(search_options options, const plan& blank, const any_objective& objective,
                                              const planning_graph& model, std::size_t capacity, bool drops) {
  const auto require = [](bool ok, const char* what, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string("two_substate_dp: ") + what + " = " + to_text(given) + "; expected " + expected);
  };
  require(options.plans >= 1, "plans", options.plans, "an integer >= 1");
  require(options.max_stages >= 1, "max_stages", options.max_stages, "an integer >= 1");
  require(capacity >= 1, "the cell policy's capacity", 0, "an integer >= 1");
  require(blank.microbatch_size >= 1, "microbatch_size", blank.microbatch_size, "an integer >= 1");
  require(blank.microbatches >= 1, "microbatches", blank.microbatches, "an integer >= 1");
  if (blank.schedule.kind == schedule_kind::explicit_orders)
    throw invalid_input("two_substate_dp: explicit orders; expected 1f1b or gpipe");
  if (options.law && options.law->is_users()) check_law(*options.law, pipelining_of(blank, model, options.warmup));
  if (!objective.monotone()) {
    if (drops) throw invalid_input("two_substate_dp: the objective is not monotone; expected one that is, or the cell policy exhaustive");
    options.prune = false;
    return options;
  }
  const double points[] = {0, 1e-3, 1, 30, 1e3, 1e6};
  const auto ask = [&](double t, double e) { return checked_score(objective, seconds(t), e); };
  const auto fell = [&](double t, double e, double t2, double e2) {
    throw invalid_model("objective: score(" + to_text(t) + " s, " + to_text(e) + " J) = " + to_text(ask(t, e)) + " falls to " +
                        to_text(ask(t2, e2)) + " at " + to_text(t2) + " s, " + to_text(e2) + " J; expected non-decreasing in both");
  };
  for (std::size_t i = 0; i < std::size(points); ++i) {
    for (std::size_t j = 0; j + 1 < std::size(points); ++j) {
      const double x = points[i], low = points[j], high = points[j + 1];
      if (ask(low, x) > ask(high, x)) fell(low, x, high, x);
      if (ask(x, low) > ask(x, high)) fell(x, low, x, high);
    }
  }
  return options;
}

HETPLAN_INLINE coarse_runs run_coarse(const search_tables& tables, const device_space& space, const plan& blank,
                                      const any_objective& objective, const search_options& options) {
  coarse_runs r{.left = options};
  const std::size_t all = tables.sequence.size() + 1;
  long long weighed = 0;
  for (std::size_t wanted = options.coarse_boundaries; options.prune && wanted > 0 && wanted < all; wanted *= 3) {
    auto few = even_boundaries(tables, wanted);
    if (few.size() * 5 > all * 4) break;
    search_result next = substate_search(tables, space, blank, objective, top_k{3}, r.left, std::move(few), r.known_score).run();
    weighed += next.counts.extended;
    r.left.most_extensions = std::max(0LL, options.most_extensions - weighed);
    if (next.plans.empty()) break;
    r.found = std::move(next);
    if (r.found.plans.size() == static_cast<std::size_t>(options.plans))
      r.known_score = std::min(r.known_score, r.found.plans.back().score);
  }
  r.found.counts.extended = weighed;
  return r;
}

HETPLAN_INLINE search_result merge_runs(search_result last, coarse_runs coarse, const search_options& options) {
  last.counts.extended += coarse.found.counts.extended;
  for (found_plan& f : coarse.found.plans) {
    const auto same = [&](const found_plan& x) { return x.plan.stages == f.plan.stages; };
    if (std::none_of(last.plans.begin(), last.plans.end(), same)) last.plans.push_back(std::move(f));
  }
  sort_by(last.plans, [](const found_plan& f) { return std::pair(f.score, f.plan.stages.size()); });
  if (last.plans.size() > static_cast<std::size_t>(options.plans)) last.plans.resize(static_cast<std::size_t>(options.plans));
  if (!last.plans.empty() && last.status.result == outcome::none_found) last.status = {};
  return last;
}

#ifdef HETPLAN_SEPARATE
template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&, const top_k&,
                                       search_options, const any_observer<cell_filled>&);
template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&, const dominance&,
                                       search_options, const any_observer<cell_filled>&);
template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&, const exhaustive&,
                                       search_options, const any_observer<cell_filled>&);
#endif

}  // namespace hetplan::partition::detail

namespace hetplan::partition {

HETPLAN_INLINE control search_side_by_side(const search_tables& tables, const std::vector<search_variant>& variants,
                                           const any_objective& objective, const top_k& policy, const search_options& options, int threads,
                                           const search_taker& taker) {
  struct answer {
    search_result found;
    long long most = 0;
  };
  const auto search = [&](const search_variant& v, long long most) {
    search_options mine = options;
    mine.warmup = v.warmup;
    mine.most_extensions = most;
    return answer{two_substate_dp(tables, *v.space, v.blank, objective, policy, mine), most};
  };
  auto allowed = variants.empty() ? std::nullopt : taker.allowance();
  if (!allowed) return control::go;
  std::atomic<long long> most = *allowed;
  numbered_work side_by_side(variants.size(), threads, [&](std::size_t i) { return search(variants[i], most); });
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (i > 0) allowed = taker.allowance();
    if (!allowed) break;
    most = *allowed;
    answer a = side_by_side.take(i);
    if (a.most != *allowed && a.found.counts.extended >= std::min(a.most, *allowed)) a = search(variants[i], *allowed);
    if (taker.take(a.found) == control::stop) return control::stop;
  }
  return control::go;
}

}  // namespace hetplan::partition
