// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The door for users' cost models: one question, seconds of a piece of work on a device.

#include <concepts>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/work.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

template <class M>
concept times_work = requires(const M& m, const work& w, const device& d) {
  { m.time(w, d) } -> std::same_as<seconds>;  // finite, >= 0; pure: the same question has the same answer
};

/// Seconds of a piece of work on a device, for its whole batch.
///
/// * Finite and >= 0; anything else throws `invalid_model` with layer, device, phase and batch. One question at a time, whatever the
///   threads.
/// * Nothing may assume that time is proportional to batch. `recipes::data_parallel` finds the best shares if it does not fall as the
///   batch grows.
/// * A layer is priced alone, and a stage takes the sum of its layers; times_boundary adds what two of them cost because one follows the
///   other. What they save has no place: make one layer of both.
/// * An unsplit backward is asked as `backward_input` and `backward_weight`, and added up. Tensor parallelism inside the device, its
///   communication included, is the answer's business.
/// * The bound asks about every batch from 1 to the plan's largest microbatch, and every degree of tensor parallelism that the device
///   allows.
///
/// Ships: `roofline` (from rates), `profiled` (from measurements), `profiled_or_roofline` (what files mean), `any_cost_model` (chosen at
/// run time), `assume_si` (of a model whose time is a plain double of seconds). How to: docs/how-to/own-cost-model.md.
template <class M>
concept cost_model = times_work<M>;

/// A refinement: seconds of the optimizer's step for one tensor of a layer. Without it the step takes 0 s.
template <class M>
concept times_optimizer_step = cost_model<M> && requires(const M& m, const layer& l, const device& d) {
  { m.optimizer_step(l, d) } -> std::same_as<seconds>;  // finite, >= 0; pure
};

/// A refinement: seconds on top, in one phase, where a stage runs `after` next behind `before`: a change of layout, a launch that is not
/// fused, a switch between two runtimes. Asked for neighbours in stage::layers, whether or not a tensor goes from one to the other; the
/// two keep their places when the backward runs them the other way round. Two stages never pay it between them, on whatever device.
template <class M>
concept times_boundary =
    cost_model<M> && requires(const M& m, const layer& before, const layer& after, const work_kind& k, const device& d) {
      { m.boundary(before, after, k, d) } -> std::same_as<seconds>;  // finite, >= 0; pure
    };

/// A refinement: the largest batch whose time the model can tell. Without it bounds over all batch sizes ask for each, and leave out
/// those that end in unknown_time.
template <class M>
concept limits_batches = cost_model<M> && requires(const M& m, const work& w, const device& d) {
  { m.largest_batch(w, d) } -> std::same_as<double>;  // of work like this one, whatever its own batch; infinite: any; pure
};

namespace detail {
struct optimizer_step_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.optimizer_step(a...));
  template <class M>
  static auto address() -> decltype(&M::optimizer_step);
};
struct boundary_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.boundary(a...));
  template <class M>
  static auto address() -> decltype(&M::boundary);
};
struct largest_batch_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.largest_batch(a...));
  template <class M>
  static auto address() -> decltype(&M::largest_batch);
};
}  // namespace detail

template <class M>
concept names_optimizer_step = times_optimizer_step<M> || names_member<M, detail::optimizer_step_call, layer, device>;
template <class M>
concept names_boundary = detail::calls_member<detail::boundary_call, const M, layer, layer, work_kind, device> ||
                         names_member<M, detail::boundary_call, layer, work_kind, device>;
template <class M>
concept names_largest_batch = limits_batches<M> || names_member<M, detail::largest_batch_call, work, device>;

namespace detail {
/// Likely slips in the optional members' names.
template <class M>
concept nearly_names_optimizer_step =
    HETPLAN_HAS_FUNCTION(M, optimiser_step) || HETPLAN_HAS_FUNCTION(M, optimizer_steps) || HETPLAN_HAS_FUNCTION(M, optimiser_steps) ||
    HETPLAN_HAS_FUNCTION(M, optimizerstep) || HETPLAN_HAS_FUNCTION(M, optimizerStep) || HETPLAN_HAS_FUNCTION(M, optimizer_Step) ||
    HETPLAN_HAS_FUNCTION(M, optimize_step) || HETPLAN_HAS_FUNCTION(M, optimzer_step) || HETPLAN_HAS_FUNCTION(M, optimizer_stp) ||
    HETPLAN_HAS_FUNCTION(M, step_optimizer);
template <class M>
concept nearly_names_boundary =
    HETPLAN_HAS_FUNCTION(M, boundry) || HETPLAN_HAS_FUNCTION(M, bondary) || HETPLAN_HAS_FUNCTION(M, bounday) ||
    HETPLAN_HAS_FUNCTION(M, boundarys) || HETPLAN_HAS_FUNCTION(M, boundaries) || HETPLAN_HAS_FUNCTION(M, boundary_s) ||
    HETPLAN_HAS_FUNCTION(M, boundary_time) || HETPLAN_HAS_FUNCTION(M, boundary_cost);
template <class M>
concept nearly_names_largest_batch =
    HETPLAN_HAS_FUNCTION(M, largestbatch) || HETPLAN_HAS_FUNCTION(M, largestBatch) || HETPLAN_HAS_FUNCTION(M, largest_batches) ||
    HETPLAN_HAS_FUNCTION(M, largest_batchsize) || HETPLAN_HAS_FUNCTION(M, largest_batch_size) || HETPLAN_HAS_FUNCTION(M, larges_batch);
}  // namespace detail

template <class M>
consteval bool check_cost_model() {
  static_assert(times_work<M>, "cost_model needs: hetplan::seconds time(const hetplan::work&, const hetplan::device&) const");
  static_assert(times_optimizer_step<M> || !names_optimizer_step<M>,
                "a cost_model's optimizer step is: hetplan::seconds optimizer_step(const hetplan::layer&, const hetplan::device&) const");
  static_assert(times_boundary<M> || !names_boundary<M>,
                "a cost_model's boundary is: hetplan::seconds boundary(const hetplan::layer&, const hetplan::layer&, "
                "const hetplan::work_kind&, const hetplan::device&) const");
  static_assert(limits_batches<M> || !names_largest_batch<M>,
                "a cost_model's largest batch is: double largest_batch(const hetplan::work&, const hetplan::device&) const");
  static_assert(times_optimizer_step<M> || !detail::nearly_names_optimizer_step<M>,
                "a cost_model's optional member is called optimizer_step; this model has one of nearly that name");
  static_assert(times_boundary<M> || !detail::nearly_names_boundary<M>,
                "a cost_model's optional member is called boundary; this model has one of nearly that name");
  static_assert(limits_batches<M> || !detail::nearly_names_largest_batch<M>,
                "a cost_model's optional member is called largest_batch; this model has one of nearly that name");
  return cost_model<M>;
}

/// The model's, or infinity where it sets no limit. Throws invalid_model.
template <cost_model M>
[[nodiscard]] double checked_largest_batch(const M& model, const work& w, const device& d) {
  if constexpr (limits_batches<M>) {
    const double b = model.largest_batch(w, d);
    if (b >= 0) return b;
    throw invalid_model("cost model: largest_batch(layer " + std::to_string(w.layer.id.value) + " \"" + w.layer.name + "\", " +
                        std::string(to_string(w.phase)) + ", device " + std::to_string(d.id.value) + " \"" + d.name +
                        "\") = " + to_text(b) + "; expected >= 0");
  } else {
    return std::numeric_limits<double>::infinity();
  }
}

/// Asks the model and checks the answer. Throws invalid_model, naming layer, device, phase and batch.
template <cost_model M>
[[nodiscard]] double checked_time_s(const M& model, const work& w, const device& d) {
  const double t = model.time(w, d).value();
  if (!(t >= 0) || !std::isfinite(t)) {
    throw invalid_model("cost model: time(layer " + std::to_string(w.layer.id.value) + " \"" + w.layer.name + "\", " +
                        std::string(to_string(w.phase)) + ", batch " + to_text(w.batch) + ", device " + std::to_string(d.id.value) + " \"" +
                        d.name + "\") = " + to_text(t) + " s; expected finite >= 0");
  }
  return t;
}

/// The same for the boundary between two layers; names both.
template <times_boundary M>
[[nodiscard]] double checked_boundary_s(const M& model, const layer& before, const layer& after, const work_kind& k, const device& d) {
  const double t = model.boundary(before, after, k, d).value();
  if (!(t >= 0) || !std::isfinite(t)) {
    const auto name = [](const layer& l) { return "layer " + std::to_string(l.id.value) + " \"" + l.name + "\""; };
    throw invalid_model("cost model: boundary(" + name(before) + ", " + name(after) + ", " + std::string(to_string(k.phase)) + ", batch " +
                        to_text(k.batch) + ", device " + std::to_string(d.id.value) + " \"" + d.name + "\") = " + to_text(t) +
                        " s; expected finite >= 0");
  }
  return t;
}

/// The same for the optimizer's step.
template <times_optimizer_step M>
[[nodiscard]] double checked_optimizer_step_s(const M& model, const layer& l, const device& d) {
  const double t = model.optimizer_step(l, d).value();
  if (!(t >= 0) || !std::isfinite(t)) {
    throw invalid_model("cost model: optimizer_step(layer " + std::to_string(l.id.value) + " \"" + l.name + "\", device " +
                        std::to_string(d.id.value) + " \"" + d.name + "\") = " + to_text(t) + " s; expected finite >= 0");
  }
  return t;
}

// A cost model chosen at run time.

namespace detail {

/// Adds up layers that a device runs one behind the other: the one place where a run of layers gets its time (prefix_table has the
/// same sums, cut open).
///
/// @param total       where to begin [s].
/// @param boundaries  does a neighbour cost anything? If not, boundary_s is never called.
/// @param time_s      layer -> seconds.   @param boundary_s  (layer, the next one) -> seconds.
template <class Time, class Boundary>
[[nodiscard]] double add_run(double total, std::span<const layer_id> run, bool boundaries, const Time& time_s, const Boundary& boundary_s) {
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (boundaries && i > 0) total += boundary_s(run[i - 1], run[i]);
    total += time_s(run[i]);
  }
  return total;
}

}  // namespace detail

/// Holds any cost model by value; copies share it (models are pure).
class any_cost_model {
 public:
  template <class M>
    requires(!std::same_as<M, any_cost_model>)
  any_cost_model(M model) : times_optimizer_(times_optimizer_step<M>), times_boundaries_(has_boundary(model)) {
    static_assert(check_cost_model<M>());
    if constexpr (requires { model.times_optimizer(); }) times_optimizer_ = model.times_optimizer();
    if constexpr (cost_model<M>) model_ = {std::move(model), calls_of<M>()};
  }

  [[nodiscard]] seconds time(const work& w, const device& d) const { return model_->time(model_.get(), w, d); }
  /// Has the model that it holds a step of its own?
  [[nodiscard]] bool times_optimizer() const { return times_optimizer_; }
  /// 0 s where it has none.
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const { return model_->optimizer_step(model_.get(), l, d); }
  /// Has the model that it holds a price for boundaries?
  [[nodiscard]] bool times_boundaries() const { return times_boundaries_; }
  /// 0 s where it has none.
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    return model_->boundary(model_.get(), before, after, k, d);
  }
  /// Infinite where the model that it holds sets no limit.
  [[nodiscard]] double largest_batch(const work& w, const device& d) const { return model_->largest_batch(model_.get(), w, d); }
  /// Seconds of every layer of a graph, by id, checked as checked_time_s does: one call for all.
  void times_s(const planning_graph& model, const work_kind& k, const device& d, double* by_layer) const {
    model_->times_s(model_.get(), model, k, d, by_layer);
  }
  /// `before`, and the seconds of several layers added one after the other, with the boundaries between them, checked as checked_time_s
  /// and checked_boundary_s do: one call for all.
  [[nodiscard]] double total_s(const planning_graph& model, std::span<const layer_id> layers, const work_kind& k, const device& d,
                               double before = 0) const {
    return model_->total_s(model_.get(), model, layers, k, d, before);
  }

 private:
  struct calls {
    seconds (*time)(void*, const work&, const device&);
    seconds (*optimizer_step)(void*, const layer&, const device&);
    seconds (*boundary)(void*, const layer&, const layer&, const work_kind&, const device&);
    double (*largest_batch)(void*, const work&, const device&);
    void (*times_s)(void*, const planning_graph&, const work_kind&, const device&, double* by_layer);
    double (*total_s)(void*, const planning_graph&, std::span<const layer_id>, const work_kind&, const device&, double before);
  };
  template <class M>
  [[nodiscard]] static calls calls_of() {
    calls c;
    c.time = [](void* m, auto... a) { return as<const M>(m).time(a...); };
    c.optimizer_step = [](void* m, auto... a) {
      if constexpr (times_optimizer_step<M>) return as<const M>(m).optimizer_step(a...);
      else return seconds();
    };
    c.boundary = [](void* m, auto... a) {
      if constexpr (times_boundary<M>) return as<const M>(m).boundary(a...);
      else return seconds();
    };
    c.largest_batch = [](void* m, auto... a) { return checked_largest_batch(as<const M>(m), a...); };
    c.times_s = [](void* m, const planning_graph& graph, const work_kind& k, const device& d, double* by_layer) {
      const M& model = as<const M>(m);
      if constexpr (requires { model.times_s(graph, k, d, by_layer); }) {
        model.times_s(graph, k, d, by_layer);
      } else {
        for (const layer& l : graph.layers()) by_layer[l.id.index()] = checked_time_s(model, k.of(l), d);
      }
    };
    c.total_s = [](void* m, const planning_graph& graph, std::span<const layer_id> layers, const work_kind& k, const device& d,
                   double before) {
      const M& model = as<const M>(m);
      if constexpr (requires { model.total_s(graph, layers, k, d, before); }) {
        return model.total_s(graph, layers, k, d, before);
      } else {
        return detail::add_run(
            before, layers, has_boundary(model), [&](layer_id l) { return checked_time_s(model, k.of(graph[l]), d); },
            [&](layer_id l, layer_id next) {
              if constexpr (times_boundary<M>) return checked_boundary_s(model, graph[l], graph[next], k, d);
              return 0.0;
            });
      }
    };
    return c;
  }
  template <class M>
  [[nodiscard]] static bool has_boundary(const M& model) {
    if constexpr (requires { model.times_boundaries(); }) return model.times_boundaries();
    else return times_boundary<M>;
  }

  erased<calls> model_;
  bool times_optimizer_, times_boundaries_;
};

/// Adapts a model whose `time` returns plain seconds as a double; its optimizer's step and boundary, if it has them, must do so too.
template <class M>
struct assume_si {
  static_assert(
      !names_optimizer_step<M> || requires(const M& m, const layer& l, const device& d) {
        { m.optimizer_step(l, d) } -> std::same_as<double>;
      }, "the optimizer step of a model in assume_si is: double optimizer_step(const hetplan::layer&, const hetplan::device&) const");
  static_assert(
      !names_boundary<M> ||
          requires(const M& m, const layer& l, const work_kind& k, const device& d) {
            { m.boundary(l, l, k, d) } -> std::same_as<double>;
          },
      "the boundary of a model in assume_si is: double boundary(const hetplan::layer&, const hetplan::layer&, "
      "const hetplan::work_kind&, const hetplan::device&) const");
  static_assert(
      !names_largest_batch<M> || requires(const M& m, const work& w, const device& d) {
        { m.largest_batch(w, d) } -> std::same_as<double>;
      }, "the largest batch of a model in assume_si is: double largest_batch(const hetplan::work&, const hetplan::device&) const");
  M model;
  [[nodiscard]] seconds time(const work& w, const device& d) const
    requires requires(const M& m) {
      { m.time(w, d) } -> std::same_as<double>;
    }
  {
    return seconds(model.time(w, d));
  }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const
    requires requires(const M& m) {
      { m.optimizer_step(l, d) } -> std::same_as<double>;
    }
  {
    return seconds(model.optimizer_step(l, d));
  }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const
    requires requires(const M& m) {
      { m.boundary(before, after, k, d) } -> std::same_as<double>;
    }
  {
    return seconds(model.boundary(before, after, k, d));
  }
  [[nodiscard]] double largest_batch(const work& w, const device& d) const
    requires requires(const M& m) {
      { m.largest_batch(w, d) } -> std::same_as<double>;
    }
  {
    return model.largest_batch(w, d);
  }
};
template <class M>
assume_si(M) -> assume_si<M>;

static_assert(check_cost_model<any_cost_model>());

// Which models a mode can run.

namespace detail {

/// Why the mode cannot run the model, in words; nothing where it can.
[[nodiscard]] std::optional<std::string> mode_fault(const planning_graph& model, mode how);

}  // namespace detail

/// A step of generation makes one token of each sequence, so that the amounts of the model are those of one token. A model that is
/// described by more tokens per sample would count each token as so many. Problems, plans, tables and bounds all ask here.
///
/// Throws  invalid_input (generation, and the model has more than one token per sample).
void check_mode(const planning_graph& model, mode how);

// Time from peak rates: compute or memory traffic, whichever takes longer, plus a launch.

/// max(FLOP b / (peak b/(b+h)), (weight traffic + traffic b) / memory bandwidth) + launch, h = half_batch.
///
/// Tensor parallelism g divides FLOP, weight traffic and traffic by g and adds, per layer, the
/// 2(g-1)/g of the largest out-edge that g accelerators gather over the interconnect, in the forward and
/// again in the backward_input (not where that phase has no FLOP). A backward part without FLOP takes 0 s;
/// a forward always counts. `context` is not read.
///
/// Throws  invalid_input: no FLOP known for the layer, no compute for the device, no interconnect where g > 1.
struct roofline {
  [[nodiscard]] seconds time(const work& w, const device& d) const;

 private:
  [[nodiscard]] static seconds gathering(const work& w, const device& d, flops per_sample);
};

static_assert(check_cost_model<roofline>());

// Time from measurements, and the usual mixture: measured where there is a profile, roofline elsewhere.

/// Piecewise linear in batch over the layer's profile for the device's kind: below the first entry its
/// value, above the last the last slope, one entry = constant. The measured backward is shared by
/// backward_input and backward_weight in proportion to their FLOP, half each where both are 0.
///
/// Throws  invalid_input: no profile for the kind, no backward in it, tensor parallelism > 1. unknown_time: the last slope
///         falls, and the batch is so large that less than no time would be left.
struct profiled {
  [[nodiscard]] seconds time(const work& w, const device& d) const;
  /// Where the last slope falls, the last batch that it leaves any time for.
  [[nodiscard]] double largest_batch(const work& w, const device& d) const;

 private:
  static constexpr double most_batch = 1e9;  ///< nobody has larger ones

  [[nodiscard]] static double interpolate(std::span<const double> x, std::span<const double> y, double at);
};

/// A layer profiled for the device's kind uses the profile, any other the roofline: what files mean.
struct profiled_or_roofline {
  [[nodiscard]] seconds time(const work& w, const device& d) const;
  [[nodiscard]] double largest_batch(const work& w, const device& d) const { return profiled{}.largest_batch(w, d); }
};

static_assert(check_cost_model<profiled>() && check_cost_model<profiled_or_roofline>());

// A cost model seen through devices that work at a factor of their speed.

/// Every answer of the model, divided by the device's factor. Factors by device id, above 0.
///
/// Throws  invalid_model where a device has no factor.
/// Source  semantics, section 10: a device at half its speed takes twice as long for everything.
template <cost_model Cost>
struct slowed {
  static_assert(check_cost_model<Cost>());
  Cost cost;
  std::vector<double> factor;

  [[nodiscard]] seconds time(const work& w, const device& d) const { return cost.time(w, d) / factor_of(d); }
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const
    requires times_optimizer_step<Cost>
  {
    return cost.optimizer_step(l, d) / factor_of(d);
  }
  [[nodiscard]] bool times_optimizer() const
    requires requires(const Cost& c) { c.times_optimizer(); }
  {
    return cost.times_optimizer();
  }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const
    requires times_boundary<Cost>
  {
    return cost.boundary(before, after, k, d) / factor_of(d);
  }
  [[nodiscard]] bool times_boundaries() const
    requires requires(const Cost& c) { c.times_boundaries(); }
  {
    return cost.times_boundaries();
  }
  [[nodiscard]] double largest_batch(const work& w, const device& d) const
    requires limits_batches<Cost>
  {
    return cost.largest_batch(w, d);
  }

 private:
  [[nodiscard]] double factor_of(const device& d) const {
    if (d.id.index() < factor.size()) return factor[d.id.index()];
    throw invalid_model("slowed: " + std::to_string(factor.size()) + " factors, none for device " + std::to_string(d.id.value) + " \"" +
                        d.name + "\"; expected one for each device of the cluster");
  }
};

/// The slowed model; an any_cost_model stays one, so that what was compiled for it serves both.
template <cost_model Cost>
[[nodiscard]] auto slow_down(Cost cost, std::vector<double> factor) {
  if constexpr (std::is_same_v<Cost, any_cost_model>) return any_cost_model(slowed<Cost>{std::move(cost), std::move(factor)});
  else return slowed<Cost>{std::move(cost), std::move(factor)};
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cost/cost_model.ipp>
#endif
