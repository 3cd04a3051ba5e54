// SPDX-License-Identifier: BSL-1.0
#include "named_models.hpp"

#include <algorithm>

namespace cli {

using namespace hetplan;

namespace {

template <class Holder, class Model>
Holder plain(std::uint64_t) {
  return Model{};
}

}  // namespace

std::span<const named_model<decompose::any_decomposition>> known_rows() {
  using holder = decompose::any_decomposition;
  static constexpr named_model<holder> all[] = {
      {"serial", "chains of merged blocks: a stage is a piece of one or whole ones", plain<holder, decompose::serial_chains>},
      {"joined", "the same row as one chain", plain<holder, decompose::joined_chains>},
      {"light", "the model's own numbering, in blocks that end where little crosses", plain<holder, decompose::light_row>}};
  return all;
}

std::span<const named_model<std::optional<any_step_law>>> known_laws() {
  using holder = std::optional<any_step_law>;
  static constexpr named_model<holder> all[] = {
      {"pipeline", "the dominant step, as the job's mode pipelines", [](std::uint64_t) { return holder(); }},
      {"sum-and-largest", "all steps once, then the slowest for every other microbatch", plain<holder, sum_and_largest>},
      {"largest-step", "a pipeline that never fills or drains", plain<holder, largest_step>}};
  return all;
}

std::span<const named_model<partition::any_device_ordering>> known_orders() {
  using holder = partition::any_device_ordering;
  static constexpr named_model<holder> all[] = {
      {"affordable", "every order of the devices where that is cheap, else three", plain<holder, partition::affordable_orders>},
      {"memory-first", "one order, by memory", plain<holder, partition::memory_first>}};
  return all;
}

std::span<const named_model<schedule::any_transfer_scheduler>> known_transfers() {
  using namespace schedule;
  using holder = any_transfer_scheduler;
  static constexpr named_model<holder> all[] = {
      {"searched", "local search, then linear programs",
       [](std::uint64_t seed) { return holder(searched_transfers{.search = {.seed = seed}, .orders = {.seed = seed}}); }},
      {"list", "one list schedule, the longest path from a transfer's start first", plain<holder, listed_transfers<critical_path_first>>},
      {"longest-tail", "one list schedule, the longest path from a transfer's end first",
       plain<holder, listed_transfers<longest_tail_first>>},
      {"earliest", "one list schedule, the earliest possible start first", plain<holder, listed_transfers<earliest_first>>},
      {"smallest", "one list schedule, the fewest bytes first", plain<holder, listed_transfers<smallest_first>>}};
  return all;
}

std::span<const named_model<coarsen::fusion_rules>> known_fusions() {
  using holder = coarsen::fusion_rules;
  static constexpr named_model<holder> all[] = {
      {"tensorrt", "convolutions and products with their norms, sums and activations; pairs of pointwise operators",
       [](std::uint64_t) { return coarsen::tensorrt_like(); }},
      {"onednn", "convolutions and products with up to three operators behind them; attention",
       [](std::uint64_t) { return coarsen::onednn_like(); }},
      {"none", "every operator by itself", [](std::uint64_t) { return coarsen::no_fusion(); }}};
  return all;
}

std::string fault_in_name(std::string_view given, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), given) != known.end()) return {};
  return "expected one of " + io::joined(known) + ", got " + io::in_quotes(given) + io::suggestion(given, known);
}

}  // namespace cli
