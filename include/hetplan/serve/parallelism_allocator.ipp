// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/parallelism_allocator.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/serve/instance_state.hpp>

namespace hetplan::serve {

HETPLAN_INLINE std::string_view to_string(task_category c) {
  constexpr std::array<std::string_view, 4> names = {"one GPU, latency", "several GPUs, latency", "one GPU, frequency",
                                                     "several GPUs, frequency"};
  return names[static_cast<std::size_t>(c)];
}

HETPLAN_INLINE int data_parallel_groups(double required_rate, double rate_of_one_group) {
  HETPLAN_ASSERT(required_rate > 0 && rate_of_one_group > 0);
  // 48 frames per second are two groups of 24, also of a computed 24.
  constexpr double most = 1024;
  return static_cast<int>(std::clamp(std::ceil(required_rate / rate_of_one_group * (1 - relative_tolerance)), 1.0, most));
}

HETPLAN_INLINE int inter_request_count(int batch, int frames) {
  HETPLAN_ASSERT(batch >= 1 && frames >= 1);
  return batch / frames;
}

HETPLAN_INLINE task_category allocation::category(const service& s) const {
  const bool several = gpu_count(s) > 1;
  if (s.is_stream()) return several ? task_category::several_gpus_frequency : task_category::one_gpu_frequency;
  return several ? task_category::several_gpus_latency : task_category::one_gpu_latency;
}

namespace detail {

/// Configures one service for one pool of GPUs, variant by variant.
class allocator {
 public:
  allocator(service_id id, const service& s, const gpu_pool& pool, const any_service_time& times, const parallelism_operators& operators)
      : id_(id), service_(s), pool_(pool), times_(times), operators_(operators), one_(id.index() + 1) {
    one_[id.index()] = s;
  }

  [[nodiscard]] std::optional<allocation> best() const {
    std::optional<allocation> found;
    for (std::size_t v = 0; v < service_.variants.size(); ++v) {
      auto next = with(static_cast<int>(v));
      if (next && (!found || better(*next, *found))) found = std::move(next);
    }
    return found;
  }

 private:
  [[nodiscard]] const service_variant& variant(const allocation& a) const { return service_.variants[static_cast<std::size_t>(a.variant)]; }
  [[nodiscard]] instance_times timed(const allocation& a) const { return {times_, one_, a.unplaced()}; }
  [[nodiscard]] double slo_s() const { return service_.answer_latency().value(); }

  /// True if a comes before b.
  [[nodiscard]] bool better(const allocation& a, const allocation& b) const {
    if (operators_.cut == model_parallelism::widest && variant(a).gpus() != variant(b).gpus()) return variant(a).gpus() > variant(b).gpus();
    const auto rank = [&](const allocation& x) {
      const double worst = x.meets_slo ? 0 : (service_.is_stream() ? -timed(x).stream_capacity(1) : x.answer.value());
      return std::tuple(!x.meets_slo, x.meets_slo ? x.gpu_count(service_) : 0, !at_most(x.answer, service_.answer_latency()), worst);
    };
    if (rank(a) != rank(b) || !a.meets_slo) return rank(a) < rank(b);
    // Of equal capacity per GPU, up to rounding, the finer slice: more services find room.
    const double per_gpu = a.capacity / a.gpus;
    const double other = b.capacity / b.gpus;
    return at_most(per_gpu, other) && at_most(other, per_gpu) ? a.gpus < b.gpus : per_gpu > other;
  }

  [[nodiscard]] std::optional<allocation> with(int number) const {
    allocation a{.what = id_, .variant = number, .alone = !operators_.multi_task};
    const auto& v = variant(a);
    if (v.gpu_kind != pool_.unit.kind || !at_most(v.memory, pool_.unit.memory) || v.gpus() > pool_.count) return std::nullopt;
    if (v.across_servers && !pool_.across_servers) return std::nullopt;
    if (pool_.across_servers && !v.across_servers && has_variant_across_servers()) return std::nullopt;
    if (operators_.cut == model_parallelism::none && v.gpus() > 1) return std::nullopt;
    choose_batch(a);
    if (service_.is_stream()) choose_frames_and_groups(a);
    if (a.gpu_count(service_) > pool_.count) return std::nullopt;
    choose_replicas(a);
    const auto t = timed(a);
    a.capacity = t.capacity();
    const double part = a.alone ? 1 : std::max(v.compute_share, v.memory.value() / pool_.unit.memory.value());
    a.gpus = part * static_cast<double>(a.gpu_count(service_));
    a.because.insert(a.because.begin(), "category: " + std::string(to_string(a.category(service_))));
    return a;
  }

  [[nodiscard]] bool has_variant_across_servers() const {
    return std::ranges::any_of(service_.variants, [this](const auto& v) { return v.across_servers && v.gpu_kind == pool_.unit.kind; });
  }

  /// Returns the longest time of a request that has just missed a batch, with full batches.
  [[nodiscard]] double answer_s(const allocation& a) const {
    const auto t = timed(a);
    if (service_.is_stream()) return service_.generates ? t.step_s(a.batch) : t.pass_s(a.batch, 0);
    if (service_.batches == batching::continuous) return t.typical_in_set_s(a.batch);
    return t.typical_s(a.batch) * (1 + 1 / static_cast<double>(t.stages()));
  }

  void choose_batch(allocation& a) const {
    const auto& v = variant(a);
    const int largest = operators_.batching ? std::min(512, times_.largest_batch({service_, v, id_, a.variant})) : 1;
    if (largest < 1)
      throw invalid_model("service_time: largest_batch(service \"" + escaped(service_.name) + "\", variant \"" + escaped(v.name) +
                          "\") = " + std::to_string(largest) + "; expected >= 1");
    std::optional<allocation> in_time;
    for (int b = 1; b <= largest; b *= 2) {
      allocation next = a;
      next.batch = b;
      next.answer = seconds(answer_s(next));
      if (b > 1 && !at_most(next.answer.value(), slo_s())) continue;
      next.capacity = timed(next).capacity();
      if (!in_time || !at_most(next.capacity, in_time->capacity)) in_time = next;
    }
    a = *in_time;
    // A single request at an idle instance does not wait.
    const auto t = timed(a);
    const double alone_s = service_.is_stream() ? a.answer.value() : t.typical_s(1);
    a.meets_slo = at_most(alone_s, slo_s());
    a.because.push_back(
        "MP: variant \"" + escaped(v.name) + "\" on " + std::to_string(v.gpus()) + (v.gpus() == 1 ? " GPU" : " GPUs") +
        (a.meets_slo ? "" : "; it misses the SLO: " + readable(seconds(alone_s)) + " > " + readable(service_.answer_latency())));
    a.because.push_back("BS " + std::to_string(a.batch) + ": the most capacity with an answer in " + readable(a.answer) +
                        (at_most(a.answer.value(), slo_s()) ? " <= " : " > ") + readable(service_.answer_latency()));
  }

  void choose_frames_and_groups(allocation& a) const {
    if (operators_.multi_frame) {
      const double most = std::floor(service_.rate * slo_s() * (1 + relative_tolerance));
      a.frames = static_cast<int>(std::clamp(most, 1.0, static_cast<double>(a.batch)));
    }
    a.because.push_back("MF " + std::to_string(a.frames) + ": so many frames of a stream come within " +
                        readable(service_.answer_latency()) + "; a batch takes those of " + std::to_string(a.streams()) +
                        (a.streams() == 1 ? " stream" : " streams") + " (eq. 5)");
    const double one = timed(a).stream_capacity(1);
    if (operators_.data_parallel) a.groups = data_parallel_groups(service_.rate, one);
    if (!at_most(service_.rate, one * a.groups)) a.meets_slo = false;
    a.because.push_back("DP " + std::to_string(a.groups) + ": a group has " + format_line("%.4g", one) + " frames/s of the " +
                        format_line("%.4g", service_.rate) + " that a stream wants (eq. 4)");
  }

  void choose_replicas(allocation& a) const {
    const auto& v = variant(a);
    if (operators_.multi_task) {
      const double by_compute = std::floor(1 / v.compute_share * (1 + relative_tolerance));
      const double by_memory = std::floor(pool_.unit.memory.value() / v.memory.value() * (1 + relative_tolerance));
      a.replicas = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(std::min(by_compute, by_memory), 1.0, 16.0))));
    }
    a.because.push_back("MT " + std::to_string(a.replicas) + ": " + format_line("%.4g", v.compute_share) + " of the compute and " +
                        readable(v.memory) + " of " + readable(pool_.unit.memory) + " of a GPU each");
  }

  service_id id_;
  const service& service_;
  const gpu_pool& pool_;
  const any_service_time& times_;
  const parallelism_operators& operators_;
  std::vector<service> one_;  ///< storage of the service for instance_times
};

}  // namespace detail

HETPLAN_INLINE std::optional<allocation> allocate(service_id id, const service& s, const gpu_pool& pool, const any_service_time& times,
                                                  const parallelism_operators& operators) {
  return detail::allocator(id, s, pool, times, operators).best();
}

}  // namespace hetplan::serve
