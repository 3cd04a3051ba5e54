// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Job files: hetplan/job/1.

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/io/fields.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::io {

inline constexpr std::string_view job_format = "hetplan/job/1";

namespace detail {

inline constexpr std::array<std::pair<std::string_view, mode>, 3> modes{
    {{"training", mode::training}, {"inference", mode::inference}, {"generation", mode::generation}}};

inline constexpr auto objectives = [] {
  std::array<std::pair<std::string_view, objective_kind>, objective_kinds.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = {to_string(objective_kinds[i]), objective_kinds[i]};
  return names;
}();

[[nodiscard]] std::vector<int> microbatch_sizes_in(const json_node& list);
[[nodiscard]] memory_savers savers_in(const json_node& list, mode how);
void put_savers(json& o, const memory_savers& s);
void read_schedule(const json_node& n, job& j);
[[nodiscard]] std::vector<pin> pins_in(const json_node& n);
void put_pins(json& o, const job& j);
void put_schedule(json& o, const job& j);

template <noun<qoe_target> Target, class Fields>
void fields_of(Target& q, Fields& f) {
  f("latency", q.latency, absent, range::above_zero, "Of an iteration in training and inference, between tokens in generation.");
  f("makespan", q.makespan, absent, range::above_zero, "Of an iteration; in generation of the whole run.");
  f("ttft", q.ttft, absent, range::above_zero, "Generation: to the first token.");
  f("time_between_tokens", q.time_between_tokens, absent, range::above_zero, "Generation of more than one token.");
  f("lambda", q.lambda_J_per_s, qoe_target{}.lambda_J_per_s, numbers_of{dimension_of<watts>, range::at_least_zero},
    "What a second beyond one of these times is worth, under objective `qoe`. Others prefer plans that keep them.");
  f("deadline", q.deadline, absent, range::above_zero, "Of the whole job.");
  f("iterations", q.iterations, absent, integers{1}, "Of the whole job.");
}

template <noun<job> Job, class Fields>
void fields_of(Job& j, Fields& f) {
  const job standard;
  f.format(job_format);
  f("mode", j.workload.mode, required, modes);
  f("batch", j.batch, required, integers{1}, "Samples per iteration, or requests in flight.");
  f.by_hand(
      "microbatch_sizes", [&](const auto& n) { j.microbatch_sizes = microbatch_sizes_in(n); },
      [&](auto& o) {
        if (!j.microbatch_sizes.empty()) o["microbatch_sizes"] = j.microbatch_sizes;
      });
  f.check([&](const auto& n) {
    at_node(
        n, [&] { return j.candidate_microbatch_sizes(); }, "job: ");
  });
  f("optimizer_factor", j.workload.optimizer_factor, standard.workload.optimizer_factor, range::at_least_zero,
    "Optimizer state per byte of trainable weight: Adam 2, SGD 0.");
  f("optimizer", j.workload.optimizer, absent, optimizers, "In place of `optimizer_factor`: see [semantics](../semantics.md#2-model).");
  f.by_hand(
      "memory_savers", [&](const auto& n) { j.memory_savers = savers_in(n, j.workload.mode); },
      [&](auto& o) { put_savers(o, j.memory_savers); });
  f("split_tensors", j.split_tensors, false, truth{}, "Devices may share tensors (grids): `dora` makes such plans, others none.");
  f("context", j.workload.context, standard.workload.context, integers{0},
    "Generation: tokens in the cache of each sequence before the prompt.");
  f("tokens", j.workload.tokens, standard.workload.tokens, integers{1}, "Generation: tokens that each sequence makes.");
  f("prompt", j.workload.prompt, absent, integers{0},
    "Generation: tokens of each prompt. Default: `tokens_per_sample` of the model if it is more than 1, else 0.");
  f("prompt_chunk", j.workload.prompt_chunk, standard.workload.prompt_chunk, integers{1},
    "Generation: most tokens of a prompt in one pass. Default: the whole prompt.");
  f("chunks_in_flight", j.workload.chunks_in_flight, standard.workload.chunks_in_flight, integers{1},
    "Generation: most chunks of a prompt between the first stage and the last. Default: any number.");
  f.by_hand(
      "schedule", [&](const auto& n) { read_schedule(n, j); }, [&](auto& o) { put_schedule(o, j); });
  f("objective", j.objective, absent, objectives,
    "Default: `qoe` if `qoe` has a time to keep, else `latency`. `latency` is the makespan, in generation of the whole run.");
  f.object("qoe", j.qoe, "an object with latency, makespan, ttft, time_between_tokens, lambda, deadline, iterations");
  f.by_hand(
      "pins", [&](const auto& n) { j.pins = pins_in(n); }, [&](auto& o) { put_pins(o, j); });
}

[[nodiscard]] job job_of(const json_object& o);

}  // namespace detail

/// Returns the names allowed for `schedule`.
[[nodiscard]] std::vector<std::string_view> schedule_names();

/// Adds a schedule to a job by name.
///
/// @param base  true if the job already has 1f1b or gpipe; updated.
/// @return      the expected names if the name is wrong, else "".
[[nodiscard]] std::string name_schedule(job& j, std::string_view name, bool& base);

/// Reads a job file.
///
/// Throws  invalid_input `FILE: /pointer: expected X, got Y` for what docs/reference/files.md calls bad input.
/// Source  docs/reference/files.md, hetplan/job/1.
[[nodiscard]] inline job read_job(const json_document& d) { return detail::job_of(open_document(d, job_format, keys_of<job>())); }

/// Returns the job file without defaults; reading it gives the identical job.
///
/// Source  docs/reference/files.md, hetplan/job/1.
[[nodiscard]] std::string write_job(const job& j);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/job_json.ipp>
#endif
