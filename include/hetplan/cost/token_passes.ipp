// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/token_passes.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace hetplan {

HETPLAN_INLINE bool token_pass::runs(const layer& l) const {
  if (!cached) return true;
  return l.runs_per_request() ? first : last || !l.sequence.last_token;
}

HETPLAN_INLINE double token_pass::tokens_of(const layer& l) const {
  if (!runs(l)) return 0;
  if (l.runs_per_request()) return 1;
  if (cached && l.sequence.last_token) return 1;
  return tokens > 0 ? tokens : l.tokens_per_sample;
}

HETPLAN_INLINE double token_pass::share_of(const layer& from, const layer& to) const {
  if (!runs(from) || !runs(to)) return 0;
  if (from.runs_per_request()) return 1;
  return std::min(tokens_of(from), tokens_of(to)) / from.tokens_per_sample;
}

HETPLAN_INLINE work_kind token_pass::asks(phase what, double batch, int tensor_parallel, double fraction) const {
  return {.phase = what,
          .batch = batch,
          .tensor_parallel = tensor_parallel,
          .context = context,
          .fraction = fraction,
          .tokens = tokens,
          .cached = cached};
}

HETPLAN_INLINE int pass_count(const workload& w, int tokens_per_sample) {
  if (w.mode != mode::generation) return 1;
  const long long prompt = w.prompt_tokens(tokens_per_sample), chunk = w.prompt_chunk > 0 ? w.prompt_chunk : prompt;
  const long long passes = prompt == 0 ? w.tokens : (prompt + chunk - 1) / chunk + w.tokens - 1;
  return static_cast<int>(std::min<long long>(passes, std::numeric_limits<int>::max()));
}

HETPLAN_INLINE token_passes::token_passes(const workload& w, const planning_graph& model) {
  if (w.mode != mode::generation) {
    distinct_ = {{}};
    counts_ = {1};
    of_number_ = {0};
    return;
  }
  if (const int passes = pass_count(w, model.tokens_per_sample()); passes > most_passes) {
    throw invalid_input("generation: " + std::to_string(passes) +
                        " passes: chunks of the prompt (prompt_chunk) and tokens; expected at most " + std::to_string(most_passes));
  }
  const int prompt = w.prompt_tokens(model.tokens_per_sample()), chunk = w.prompt_chunk > 0 ? std::min(w.prompt_chunk, prompt) : prompt;
  chunks_ = prompt == 0 ? 0 : (prompt + chunk - 1) / chunk;
  steps_ = prompt == 0 ? w.tokens : w.tokens - 1;
  for (int j = 0; j < chunks_; ++j) {
    distinct_.push_back({.tokens = std::min(chunk, prompt - j * chunk),
                         .context = w.context + j * chunk,
                         .cached = true,
                         .first = j == 0,
                         .last = j + 1 == chunks_});
    counts_.push_back(1);
  }
  distinct_chunks_ = distinct_.size();
  constexpr int most_contexts = 16;  // beside the first
  const int apart = std::max(1, (w.all_tokens() + most_contexts - 1) / most_contexts);
  step_ = w.all_tokens();
  steps_each_ = static_cast<long long>(w.tokens) * apart;
  for (int i = 0; i < steps_; ++i) {
    const std::size_t number = context_number(i);
    if (number >= of_number_.size()) {  // a sample of few steps leaves some out
      of_number_.resize(number + 1, distinct_.size());
      distinct_.push_back(
          {.tokens = 1, .context = w.context + prompt + static_cast<int>(number) * apart, .cached = true, .first = false, .last = true});
      counts_.push_back(0);
    }
    ++counts_[of_number_[number]];
  }
}

HETPLAN_INLINE std::vector<token_pass> shapes_of(const token_passes& passes) {
  std::vector<token_pass> shapes;
  for (const token_pass& pass : passes.distinct()) {
    const token_pass shape = shape_of(pass);
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

HETPLAN_INLINE std::vector<double> mean_edge_shares(const planning_graph& model, const token_passes& passes, run_part part) {
  std::vector<double> shares;
  if (!passes[0].cached) return shares;
  for (const layer_edge& e : model.edges())
    shares.push_back(mean_over(
        passes, [&](const token_pass& pass) { return pass.share_of(model[e.from], model[e.to]); }, part));
  return shares;
}

HETPLAN_INLINE bool limits_chunks(const workload& w, const planning_graph& model) {
  if (w.mode != mode::generation || w.chunks_in_flight == 0) return false;
  const int prompt = w.prompt_tokens(model.tokens_per_sample()), chunk = w.largest_pass(model.tokens_per_sample());
  return (prompt + chunk - 1) / chunk > w.chunks_in_flight;
}

HETPLAN_INLINE std::vector<int> usable_degrees(const planning_graph& model, std::span<const layer_id> layers, const device& d) {
  std::vector<int> usable{1};
  for (int g = 2; d.interconnect && g <= d.accelerators; ++g) {
    const auto allows = [&](layer_id l) { return model[l].allows(g) && model[l].profile_for(d.kind) == nullptr; };
    if (std::all_of(layers.begin(), layers.end(), allows)) usable.push_back(g);
  }
  return usable;
}

HETPLAN_INLINE std::vector<int> usable_degrees(const planning_graph& model, const device& d) {
  std::vector<int> usable{1};
  const auto layers = model.layers();
  if (std::any_of(layers.begin(), layers.end(), [&](const layer& l) { return l.profile_for(d.kind) != nullptr; })) return usable;
  for (int g = 2; d.interconnect && g <= d.accelerators; ++g) {
    if (std::any_of(layers.begin(), layers.end(), [&](const layer& l) { return l.allows(g); })) usable.push_back(g);
  }
  return usable;
}

HETPLAN_INLINE void check_tokens(const any_cost_model& cost, const planning_graph& model, std::span<const device> devices,
                                 const token_passes& passes) {
  const auto all = passes.distinct();
  const auto [shortest, longest] =
      std::minmax_element(all.begin(), all.end(), [](const token_pass& a, const token_pass& b) { return a.tokens < b.tokens; });
  if (shortest->tokens == longest->tokens) return;
  const auto time_s = [&](const token_pass& pass, const layer& l, const device& d) {
    return checked_time_s(cost, pass.asks(phase::forward, 1).of(l), d);
  };
  token_pass far = *longest;  // a layer that moves its weights takes as long for few tokens as for one, and longer for many
  far.tokens = static_cast<int>(std::min(1e9, 1e6 * far.tokens));
  const layer* priced = nullptr;
  for (const layer& l : model.layers()) {
    if (l.runs_per_request() || l.sequence.last_token || l.forward_flops == flops{}) continue;  // as many tokens in every pass, or no work
    for (const device& d : devices) {
      if (l.profile_for(d.kind) != nullptr) continue;
      const double s = time_s(*longest, l, d);
      if (s != time_s(*shortest, l, d) || s != time_s(far, l, d)) return;
      if (s > 0) priced = &l;
    }
  }
  if (priced == nullptr) return;
  throw invalid_model("cost model: time(layer \"" + priced->name + "\", ...) is the same for " + std::to_string(longest->tokens) +
                      " and for " + std::to_string(shortest->tokens) +
                      " new tokens, and so for all layers and devices; expected a model that reads work::tokens, or takes FLOP and bytes "
                      "from the members of work");
}

HETPLAN_INLINE void check_tiers(const any_cost_model& cost, const planning_graph& model, std::span<const device> devices,
                                const token_passes& passes) {
  const layer* asked = nullptr;
  for (const layer& l : model.layers()) {
    if (!(l.weight_traffic > bytes{})) continue;
    const token_pass* runs = nullptr;
    for (const token_pass& pass : passes.distinct()) runs = runs == nullptr && pass.runs(l) ? &pass : runs;
    for (const device& d : devices) {
      if (runs == nullptr || d.tiers.empty()) continue;
      work_kind k = runs->asks(phase::forward, 1);
      const auto time_s = [&](double rate) {
        k.tier_bandwidth = bytes_per_second(rate);
        return checked_time_s(cost, k.of(l), d);
      };
      const double rate = d.tiers.front().bandwidth.value();
      if (time_s(rate) != time_s(rate / 2)) return;
      asked = &l;
    }
  }
  if (asked == nullptr) return;
  throw invalid_model("cost model: time(layer \"" + asked->name +
                      "\", ...) is the same whatever the bandwidth of the memory tier that its weights lie in, and so for all layers and "
                      "devices with tiers; expected a model that adds work::tier_time()");
}

HETPLAN_INLINE std::size_t token_passes::which(int pass) const {
  if (pass < chunks_) return static_cast<std::size_t>(pass);
  return of_number_[context_number(pass - chunks_)];
}

}  // namespace hetplan
