// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Passes of a run through a model: one in training and inference; in generation the chunks of the prompt, then the steps.

#include <cstddef>
#include <span>
#include <vector>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

/// One pass: what its layers are asked, and which of them run.
struct token_pass {
  int tokens = 0;       ///< new tokens of each sequence; 0: those of a sample
  int context = 0;      ///< tokens of each sequence in the cache before
  bool cached = false;  ///< generation
  bool first = true;    ///< first chunk of a prompt: layers per request run
  bool last = true;     ///< last chunk, or a step: layers of the last token run

  [[nodiscard]] bool runs(const layer& l) const;
  /// Returns how many tokens of a sequence the layer computes; 1 for the request of a layer per request, 0 if it does not run.
  [[nodiscard]] double tokens_of(const layer& l) const;
  /// Returns the part of a sample's amounts that the layer computes.
  [[nodiscard]] double share_of(const layer& l) const { return tokens_of(l) / l.tokens_per_sample; }
  /// Returns the part of a sample's bytes that an edge carries: the tokens that both ends compute.
  [[nodiscard]] double share_of(const layer& from, const layer& to) const;
  /// Returns the work of layers of a batch in this pass, for a cost model.
  [[nodiscard]] work_kind asks(phase what, double batch, int tensor_parallel = 1, double fraction = 1) const;

  friend bool operator==(const token_pass&, const token_pass&) = default;
};

/// Parts of a run of generation: the passes until the first token, which are the chunks of the prompt, or the first step without a prompt;
/// and the passes behind it. Outside generation only the whole matters.
enum class run_part { whole, first_token, later_tokens };

/// The passes of a run, numbered in order. Of the steps' contexts only some are told apart: each is rounded up to one of at most 17, so
/// that a long run asks a cost model few questions.
/// Source  semantics, section 6 (generation).
class token_passes {
 public:
  /// Throws invalid_input if the passes are too many to run, as chunks of one token of a long prompt are.
  token_passes(const workload& w, const planning_graph& model);

  /// Returns the number of passes.
  [[nodiscard]] int size() const { return chunks_ + steps_; }
  [[nodiscard]] int size(run_part part) const {
    const int leading = chunks_ > 0 ? chunks_ : 1;
    return part == run_part::whole ? size() : part == run_part::first_token ? leading : size() - leading;
  }
  /// Returns the number of chunks of the prompt, which come first.
  [[nodiscard]] int chunks() const { return chunks_; }
  [[nodiscard]] const token_pass& operator[](int pass) const { return distinct_[which(pass)]; }

  /// Returns the passes without repeats, in order.
  [[nodiscard]] std::span<const token_pass> distinct() const { return distinct_; }
  /// Returns the number of a pass among the distinct ones.
  [[nodiscard]] std::size_t which(int pass) const;
  /// Returns how many passes are like a distinct one.
  [[nodiscard]] double count_of(std::size_t distinct) const { return counts_[distinct]; }
  [[nodiscard]] double count_of(std::size_t distinct, run_part part) const {
    const double leading = distinct < distinct_chunks_ || (chunks_ == 0 && distinct == 0) ? 1 : 0;
    return part == run_part::whole ? counts_[distinct] : part == run_part::first_token ? leading : counts_[distinct] - leading;
  }

  /// Returns true if a step follows the pass: then the tokens that it makes go back to the first stages.
  [[nodiscard]] bool makes_tokens_for_a_step(int pass) const { return pass + 1 >= chunks_ && pass + 1 < size(); }

 private:
  [[nodiscard]] std::size_t context_number(int step) const {
    return static_cast<std::size_t>((step * step_ + steps_each_ - 1) / steps_each_);
  }

  int chunks_ = 0, steps_ = 1;
  long long step_ = 1, steps_each_ = 1;  ///< step i has the context number ceil(i step_ / steps_each_)
  std::vector<std::size_t> of_number_;   ///< by context number that a step has: index into `distinct_`
  std::vector<token_pass> distinct_;
  std::vector<double> counts_;
  std::size_t distinct_chunks_ = 0;
};

/// Limit on the passes of a run: with more no plan is small enough to simulate.
inline constexpr int most_passes = 4'000'000;
/// Returns the number of passes of a run; see token_passes.
[[nodiscard]] int pass_count(const workload& w, int tokens_per_sample);

/// Returns the distinct passes without what is cached, on which neither traffic between stages nor activations depend.
[[nodiscard]] std::vector<token_pass> shapes_of(const token_passes& passes);
/// Returns the shape of a pass.
[[nodiscard]] inline token_pass shape_of(token_pass pass) {
  pass.context = 0;
  return pass;
}

/// Returns the part of each edge's bytes that goes forward in the mean over the passes of a part of the run, by index into
/// planning_graph::edges; nothing outside generation, where it is all of them.
[[nodiscard]] std::vector<double> mean_edge_shares(const planning_graph& model, const token_passes& passes,
                                                   run_part part = run_part::whole);

/// Has a prompt more chunks than may be in flight?
[[nodiscard]] bool limits_chunks(const workload& w, const planning_graph& model);

/// Returns the degrees of tensor parallelism at which a device may run layers, ascending from 1: those that every layer allows, of its
/// accelerators that an interconnect joins. 1 alone if a layer is profiled on the device's kind, as a profile is of one accelerator.
[[nodiscard]] std::vector<int> usable_degrees(const planning_graph& model, std::span<const layer_id> layers, const device& d);
/// Returns the degrees that some layer of a model allows; 1 alone if any is profiled on the device's kind.
[[nodiscard]] std::vector<int> usable_degrees(const planning_graph& model, const device& d);

/// Checks that a cost model looks at the tokens that it is asked about, where a run has passes of several lengths. One that prices samples
/// alone would take a prompt of 512 tokens for one. Profiles of a device's kind may be constant, so layers that have one are not asked.
///
/// Throws      invalid_model, if the times of all layers on all devices are the same for the longest and the shortest pass.
/// Complexity  two questions; for a model that is refused, two for each layer and device.
void check_tokens(const any_cost_model& cost, const planning_graph& model, std::span<const device> devices, const token_passes& passes);

/// Checks that a cost model looks at work::tier_bandwidth, where some devices have tiers below their memory. One that does not would give a
/// plan that reads its weights from a disk the time of one that has them in memory.
///
/// Throws      invalid_model, if the times of all layers with weights on all such devices are the same at two bandwidths.
/// Complexity  two questions; for a model that is refused, two for each layer and device with tiers.
void check_tiers(const any_cost_model& cost, const planning_graph& model, std::span<const device> devices, const token_passes& passes);

/// Returns the mean of f(pass) over the passes of a part of the run, weighted by how often each occurs: so the part takes size(part) passes
/// of the mean. 0 for a part without passes.
template <class F>
[[nodiscard]] double mean_over(const token_passes& passes, const F& f, run_part part = run_part::whole) {
  if (passes.distinct().size() == 1 && part == run_part::whole) return f(passes.distinct().front());
  double total = 0;
  for (std::size_t i = 0; i < passes.distinct().size(); ++i) {
    if (const double count = passes.count_of(i, part); count > 0) total += count * f(passes.distinct()[i]);
  }
  return passes.size(part) > 0 ? total / passes.size(part) : 0;
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cost/token_passes.ipp>
#endif
