// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/judged_tokens.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::serve {

namespace detail {

/// Plans generation of one model on one cluster, and fits what is simulated.
class token_judge {
 public:
  token_judge(const planning_graph& model, const cluster& gpus, const any_cost_model& cost, const adapt::any_planner& planner,
              const judged_token_options& options)
      : model_(model), gpus_(gpus), cost_(cost), planner_(planner), options_(options) {}

  [[nodiscard]] judged_tokens fit() {
    judged_tokens t;
    fit_prompts(t);
    t.cache_tokens = cache_tokens();
    fit_steps(t);
    return t;
  }

 private:
  /// A simulated pass or step: its tokens in, or in the caches.
  struct sample {
    int batch;
    double tokens;
    double seconds;
  };

  [[nodiscard]] std::optional<evaluation> judged(int batch, int prompt, int context, int tokens) {
    const workload what{.mode = mode::generation, .context = context, .tokens = tokens, .prompt = prompt};
    planning_problem problem{model_, gpus_, cost_, job{.workload = what, .batch = batch, .microbatch_sizes = sizes_up_to(batch)},
                             options_.models};
    problem.with_bounds = false;
    const plan_result planned = planner_(problem);
    if (planned.plans.empty()) {
      reason_ = planned.status.reason;
      return std::nullopt;
    }
    return planned.plans.front().evaluation;
  }

  void fit_prompts(judged_tokens& t) {
    const double typical = std::clamp(options_.typical.in, 1.0, 1e6);
    std::vector<sample> all;
    const auto ask = [&](int batch, double length) {
      const int tokens = std::max(1, static_cast<int>(std::lround(length)));
      const auto e = judged(batch, tokens, 0, 1);
      if (!e) return;
      all.push_back({batch, static_cast<double>(batch) * tokens, e->times().ttft.value()});
      longest_ = std::max(longest_, tokens);
    };
    ask(1, 1);
    if (all.empty())
      refuse("no plan for a prompt of one token of model \"" + escaped(model_.name()) + "\" on \"" + escaped(gpus_.name()) +
             "\": " + reason_);
    if (!(all.front().seconds > 0)) refuse("a prompt of one token of model \"" + escaped(model_.name()) + "\" takes 0 s; expected more");
    for (const double times : {0.25, 1.0, 4.0}) ask(1, times * typical);
    if (options_.largest >= 4) ask(4, typical);

    // Least squares of (base + each x) / t - 1.
    double s11 = 0, s1x = 0, sxx = 0, s1 = 0, sx = 0;
    for (const auto& [batch, x, s] : all) {
      s11 += 1 / (s * s);
      s1x += x / (s * s);
      sxx += x * x / (s * s);
      s1 += 1 / s;
      sx += x / s;
    }
    const double determinant = s11 * sxx - s1x * s1x;
    double base_s = all.front().seconds, each_s = 0;
    if (determinant > relative_tolerance * s11 * sxx) {
      base_s = (s1 * sxx - sx * s1x) / determinant;
      each_s = (sx * s11 - s1 * s1x) / determinant;
    }
    if (each_s < 0) each_s = 0, base_s = s1 / s11;
    if (base_s <= 0) base_s = all.front().seconds, each_s = std::max(0.0, (sx - base_s * s1x) / sxx);
    t.times.pass = options_.largest == 1 ? batch_curve{{1}, {base_s}} : batch_curve{{1, options_.largest}, {base_s, base_s}};
    t.times.per_token_s = each_s;
    for (const auto& [batch, x, s] : all) t.pass_deviation = std::max(t.pass_deviation, std::abs((base_s + each_s * x) / s - 1));
  }

  /// Returns the tokens that fit the cache, beside the longest planned prompt's work; 0 if no layer has a cache.
  [[nodiscard]] std::int64_t cache_tokens() {
    constexpr int near = 256, far = 512;
    const auto a = judged(1, longest_, near, 1), b = judged(1, longest_, far, 1);
    if (!a || !b) return longest_;
    double room = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < a->devices.size(); ++d) {
      const double peak_b = a->devices[d].peak_memory.value();
      const double each_b = (b->devices[d].peak_memory.value() - peak_b) / (far - near);
      if (each_b > 0) room = std::min(room, std::max(0.0, gpus_[device_id(d)].usable_memory().value() - peak_b) / each_b);
    }
    if (!std::isfinite(room)) return 0;
    return near + longest_ + 1 + static_cast<std::int64_t>(std::min(room, 1e15));
  }

  void fit_steps(judged_tokens& t) {
    const double cache = t.cache_tokens > 0 ? static_cast<double>(t.cache_tokens) : std::numeric_limits<double>::infinity();
    const double typical = std::clamp(options_.typical.in + options_.typical.out, 2.0, 1e6);
    std::vector<sample> all;  // two for each batch
    for (const int b : sizes_up_to(options_.largest)) {
      const int far = static_cast<int>(std::min(2 * typical, cache / b));
      const int near = std::max(2, far / 4);
      if (far <= near) break;
      // A run of two tokens has one step, which reads the context, the first token and its own.
      const auto e = judged(b, 0, near - 2, 2), f = judged(b, 0, far - 2, 2);
      if (!e || !f) break;
      all.push_back({b, static_cast<double>(b) * near, e->response().value()});
      all.push_back({b, static_cast<double>(b) * far, f->response().value()});
    }
    if (all.empty())
      refuse("no plan for a step of model \"" + escaped(model_.name()) + "\" on \"" + escaped(gpus_.name()) + "\": " + reason_);
    double up = 0, down = 0;
    for (std::size_t i = 0; i < all.size(); i += 2) {
      const double more = (all[i + 1].tokens - all[i].tokens) / all[i + 1].seconds;
      up += more * (all[i + 1].seconds - all[i].seconds) / all[i + 1].seconds;
      down += more * more;
    }
    auto& each_s = t.times.per_cached_token_s;
    each_s = std::max(0.0, up / down);
    for (std::size_t i = 0; i < all.size(); i += 2) {
      const double step_s = std::max((all[i].seconds + all[i + 1].seconds - each_s * (all[i].tokens + all[i + 1].tokens)) / 2,
                                     relative_tolerance * all[i].seconds);
      t.times.step.batch.push_back(all[i].batch);
      t.times.step.seconds_at.push_back(i == 0 ? step_s : std::max(step_s, t.times.step.seconds_at.back()));
    }
    for (const auto& [b, tokens, s] : all)
      t.step_deviation = std::max(t.step_deviation, std::abs((t.times.step.at(b) + each_s * tokens) / s - 1));
  }

  [[noreturn]] static void refuse(const std::string& what) { throw invalid_input("judged_token_times: " + what); }

  const planning_graph& model_;
  const cluster& gpus_;
  const any_cost_model& cost_;
  const adapt::any_planner& planner_;
  const judged_token_options& options_;
  int longest_ = 1;  ///< prompt that has a plan
  std::string reason_;
};

}  // namespace detail

HETPLAN_INLINE judged_tokens judged_token_times(const planning_graph& model, const cluster& gpus, const any_cost_model& cost,
                                                const adapt::any_planner& planner, const judged_token_options& options) {
  const auto refuse = [](const std::string& what) { throw invalid_input("judged_token_times: " + what); };
  if (options.largest < 1) refuse("largest = " + std::to_string(options.largest) + "; expected a batch >= 1");
  if (!std::isfinite(options.typical.in) || options.typical.in < 0)
    refuse("tokens in = " + to_text(options.typical.in) + "; expected >= 0");
  if (!std::isfinite(options.typical.out) || options.typical.out < 1)
    refuse("tokens out = " + to_text(options.typical.out) + "; expected >= 1");
  return detail::token_judge(model, gpus, cost, planner, options).fit();
}

}  // namespace hetplan::serve
