// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/service_time.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::serve {

HETPLAN_INLINE double batch_curve::at(int n) const {
  HETPLAN_ASSERT(!batch.empty() && n >= 1 && n <= batch.back());
  const auto above = std::ranges::lower_bound(batch, n);
  const auto i = static_cast<std::size_t>(above - batch.begin());
  if (*above == n) return seconds_at[i];
  const double part = static_cast<double>(n - batch[i - 1]) / static_cast<double>(batch[i] - batch[i - 1]);
  return seconds_at[i - 1] + part * (seconds_at[i] - seconds_at[i - 1]);
}

namespace detail {

HETPLAN_INLINE void validate_curve(const std::string& who, const batch_curve& c) {
  if (c.batch.empty() || c.batch.front() != 1) throw invalid_input(who + ": expected sizes of batch that begin with 1");
  if (c.batch.size() != c.seconds_at.size())
    throw invalid_input(who + ": " + std::to_string(c.seconds_at.size()) + " times for " + std::to_string(c.batch.size()) +
                        " sizes of batch; expected as many");
  for (std::size_t i = 0; i < c.batch.size(); ++i) {
    if (i > 0 && c.batch[i] <= c.batch[i - 1]) throw invalid_input(who + ": sizes of batch; expected ascending ones");
    if (!std::isfinite(c.seconds_at[i]) || c.seconds_at[i] <= 0)
      throw invalid_input(who + ": " + to_text(c.seconds_at[i]) + " s for a batch of " + std::to_string(c.batch[i]) +
                          "; expected a finite time > 0");
    if (i > 0 && c.seconds_at[i] < c.seconds_at[i - 1])
      throw invalid_input(who + ": a batch of " + std::to_string(c.batch[i]) + " takes less time than one of " +
                          std::to_string(c.batch[i - 1]) + "; expected at least as much");
  }
}

}  // namespace detail

HETPLAN_INLINE service_time_table::service_time_table(std::vector<std::vector<variant_times>> times) : times_(std::move(times)) {
  for (std::size_t s = 0; s < times_.size(); ++s) {
    for (std::size_t v = 0; v < times_[s].size(); ++v) {
      const std::string who = "service_time_table: service " + std::to_string(s) + ", variant " + std::to_string(v);
      const auto& t = times_[s][v];
      detail::validate_curve(who + ", pass", t.pass);
      if (!t.step.batch.empty()) detail::validate_curve(who + ", step", t.step);
      for (const auto& [what, each_s] : {std::pair{"per_token_s", t.per_token_s}, {"per_cached_token_s", t.per_cached_token_s}}) {
        if (!std::isfinite(each_s) || each_s < 0)
          throw invalid_input(who + ": " + what + " = " + to_text(each_s) + "; expected a finite time >= 0");
      }
    }
  }
}

HETPLAN_INLINE void service_time_table::refuse(const service_run& r) const {
  throw invalid_model("service_time_table: times of " + std::to_string(times_.size()) + " services, none of service " +
                      std::to_string(r.id.value) + " \"" + r.what.name + "\", variant " + std::to_string(r.variant) +
                      "; expected those of every service and variant that runs");
}

HETPLAN_INLINE int service_time_table::largest_batch(const service_run& r) const {
  const auto& t = of(r);
  return t.step.batch.empty() ? t.pass.batch.back() : std::min(t.pass.batch.back(), t.step.batch.back());
}

HETPLAN_INLINE roofline_service_time::roofline_service_time(std::map<std::string, gpu_speed> kinds, std::vector<model_work> work,
                                                            int largest)
    : kinds_(std::move(kinds)), work_(std::move(work)), largest_(largest) {
  const auto expect = [](const std::string& whose, const char* what, double v, bool positive) {
    if (!std::isfinite(v) || v < 0 || (positive && v == 0))
      throw invalid_input("roofline_service_time: " + whose + ": " + what + " = " + to_text(v) + "; expected a finite number " +
                          (positive ? "> 0" : ">= 0"));
  };
  for (const auto& [kind, s] : kinds_) {
    const std::string whose = "GPU \"" + escaped(kind) + "\"";
    expect(whose, "compute [FLOP/s]", s.compute.value(), true);
    expect(whose, "memory [B/s]", s.memory.value(), true);
    expect(whose, "link [B/s]", s.link.value(), true);
    expect(whose, "network [B/s]", s.network.value(), true);
    expect(whose, "launch [s]", s.launch.value(), false);
    expect(whose, "link_latency [s]", s.link_latency.value(), false);
    expect(whose, "network_latency [s]", s.network_latency.value(), false);
  }
  for (std::size_t l = 0; l < work_.size(); ++l) {
    const auto& w = work_[l];
    const std::string whose = "service " + std::to_string(l);
    expect(whose, "per_request [FLOP]", w.per_request.value(), false);
    expect(whose, "per_token [FLOP]", w.per_token.value(), false);
    expect(whose, "FLOP of both", w.per_request.value() + w.per_token.value(), true);
    expect(whose, "weights [B]", w.weights.value(), false);
    expect(whose, "moved_per_request [B]", w.moved_per_request.value(), false);
    expect(whose, "cache_per_token [B]", w.cache_per_token.value(), false);
    expect(whose, "reserved [B]", w.reserved.value(), false);
    expect(whose, "exchanged [B]", w.exchanged.value(), false);
    expect(whose, "operators", w.operators, true);
    expect(whose, "exchanges", w.exchanges, false);
  }
  expect("largest", "batch", largest_, true);
}

HETPLAN_INLINE const model_work& roofline_service_time::work_of(const service_run& r) const {
  if (r.id.index() < work_.size()) return work_[r.id.index()];
  throw invalid_input("roofline_service_time: no work of service \"" + escaped(r.what.name) + "\" was given");
}

HETPLAN_INLINE const gpu_speed& roofline_service_time::speed_of(const service_run& r) const {
  const auto found = kinds_.find(r.as.gpu_kind);
  if (found != kinds_.end()) return found->second;
  throw invalid_input("roofline_service_time: service \"" + escaped(r.what.name) + "\": no speed of GPUs of kind \"" +
                      escaped(r.as.gpu_kind) + "\" was given");
}

HETPLAN_INLINE double roofline_service_time::once_s(const service_run& r, double flops, double bytes, double items) const {
  const auto& g = speed_of(r);
  const auto& w = work_of(r);
  const double tensors = r.as.tensor_parallel;
  const double part = r.as.compute_share * tensors;
  const double link_b = (r.as.across_servers ? g.network : g.link).value();
  const double latency_s = (r.as.across_servers ? g.network_latency : g.link_latency).value();
  double exchanged_s = static_cast<double>(r.as.pipeline_parallel - 1) * (latency_s + items * w.exchanged.value() / link_b);
  if (r.as.tensor_parallel > 1)
    exchanged_s += w.exchanges * (2 * latency_s + 2 * (tensors - 1) / tensors * items * w.exchanged.value() / link_b);
  return w.operators * g.launch.value() + std::max(flops / (g.compute.value() * part), bytes / (g.memory.value() * part)) + exchanged_s;
}

HETPLAN_INLINE seconds roofline_service_time::pass(const service_run& r, const batch_load& b) const {
  const auto& w = work_of(r);
  const double requests = b.requests;
  return seconds(once_s(r, requests * w.per_request.value() + b.tokens_in * w.per_token.value(),
                        w.weights.value() + requests * w.moved_per_request.value(), r.what.generates ? b.tokens_in : requests));
}

HETPLAN_INLINE seconds roofline_service_time::step(const service_run& r, int requests) const {
  const auto& w = work_of(r);
  const double cached = (r.what.tokens.in + r.what.tokens.out / 2) * w.cache_per_token.value();
  return seconds(once_s(r, requests * w.per_token.value(), w.weights.value() + requests * cached, requests));
}

HETPLAN_INLINE int roofline_service_time::largest_batch(const service_run& r) const {
  const auto& w = work_of(r);
  const double each = r.what.generates ? (r.what.tokens.in + r.what.tokens.out) * w.cache_per_token.value() : w.moved_per_request.value();
  const double room = (r.as.memory.value() - w.reserved.value()) * r.as.gpus() - w.weights.value();
  if (!(each > 0)) return largest_;
  return static_cast<int>(std::clamp(std::floor(room / each * (1 + relative_tolerance)), 1.0, static_cast<double>(largest_)));
}

namespace detail {

HETPLAN_INLINE std::vector<int> sizes_up_to(int largest) {
  std::vector<int> sizes;
  for (std::int64_t b = 1; b < largest; b *= 2) sizes.push_back(static_cast<int>(b));
  sizes.push_back(largest);
  return sizes;
}

/// Returns the seconds of each batch under a workload: its whole inference, or the time between its tokens.
HETPLAN_INLINE batch_curve judged_curve(const planning_graph& model, const cluster& gpus, const any_cost_model& cost,
                                        const adapt::any_planner& planner, const judged_batches& batches, const workload& what) {
  batch_curve c;
  for (const int b : sizes_up_to(batches.largest)) {
    // A batch of any size may stay whole: servers split batches only if that is quicker.
    const planning_problem problem{model, gpus, cost, job{.workload = what, .batch = b, .microbatch_sizes = sizes_up_to(b)},
                                   batches.models};
    const plan_result planned = planner(problem);
    if (planned.plans.empty()) {
      if (!c.batch.empty()) break;
      throw invalid_input("judged_service_time: no plan for a batch of 1 of model \"" + escaped(model.name()) + "\" on \"" +
                          escaped(gpus.name()) + "\": " + planned.status.reason);
    }
    const double response_s = planned.plans.front().evaluation.response().value();
    if (!(response_s > 0))
      throw invalid_input("judged_service_time: a batch of " + std::to_string(b) + " of model \"" + escaped(model.name()) +
                          "\" takes 0 s; expected more");
    c.batch.push_back(b);
    c.seconds_at.push_back(c.seconds_at.empty() ? response_s : std::max(response_s, c.seconds_at.back()));
  }
  return c;
}

}  // namespace detail

HETPLAN_INLINE variant_times judged_service_time(const planning_graph& model, const cluster& gpus, const any_cost_model& cost,
                                                 const adapt::any_planner& planner, const judged_batches& batches) {
  if (batches.largest < 1)
    throw invalid_input("judged_service_time: largest = " + std::to_string(batches.largest) + "; expected a batch >= 1");
  if (batches.tokens < 2) throw invalid_input("judged_service_time: tokens = " + std::to_string(batches.tokens) + "; expected at least 2");
  return {.pass = detail::judged_curve(model, gpus, cost, planner, batches, {.mode = mode::inference})};
}

HETPLAN_INLINE variant_times judged_service_time(const planning_graph& prompt, const planning_graph& token, const cluster& gpus,
                                                 const any_cost_model& cost, const adapt::any_planner& planner,
                                                 const judged_batches& batches) {
  auto t = judged_service_time(prompt, gpus, cost, planner, batches);
  t.step = detail::judged_curve(token, gpus, cost, planner, batches,
                                {.mode = mode::generation, .context = batches.context, .tokens = batches.tokens, .prompt = 0});
  return t;
}

}  // namespace hetplan::serve
