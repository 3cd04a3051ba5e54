// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A cost model chosen at run time.

#include <memory>
#include <span>
#include <utility>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

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

/// Holds any cost model by value; copies share it (models are pure). One virtual call per question.
class any_cost_model {
 public:
  template <class M>
    requires(!std::same_as<M, any_cost_model>)
  any_cost_model(M model) {
    static_assert(check_cost_model<M>());
    if constexpr (cost_model<M>) model_ = std::make_shared<holder<M>>(std::move(model));
  }

  [[nodiscard]] seconds time(const work& w, const device& d) const { return model_->time(w, d); }
  /// Has the model that it holds a step of its own?
  [[nodiscard]] bool times_optimizer() const { return model_->times_optimizer(); }
  /// 0 s where it has none.
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const { return model_->optimizer_step(l, d); }
  /// Has the model that it holds a price for boundaries?
  [[nodiscard]] bool times_boundaries() const { return model_->times_boundaries(); }
  /// 0 s where it has none.
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    return model_->boundary(before, after, k, d);
  }
  /// Infinite where the model that it holds sets no limit.
  [[nodiscard]] double largest_batch(const work& w, const device& d) const { return model_->largest_batch(w, d); }
  /// Seconds of every layer of a graph, by id, checked as checked_time_s does: one virtual call for all.
  void times_s(const planning_graph& model, const work_kind& k, const device& d, double* by_layer) const {
    model_->times_s(model, k, d, by_layer);
  }
  /// `before`, and the seconds of several layers added one after the other, with the boundaries between them, checked as checked_time_s
  /// and checked_boundary_s do: one virtual call for all.
  [[nodiscard]] double total_s(const planning_graph& model, std::span<const layer_id> layers, const work_kind& k, const device& d,
                               double before = 0) const {
    return model_->total_s(model, layers, k, d, before);
  }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual seconds time(const work&, const device&) const = 0;
    [[nodiscard]] virtual bool times_optimizer() const = 0;
    [[nodiscard]] virtual seconds optimizer_step(const layer&, const device&) const = 0;
    [[nodiscard]] virtual bool times_boundaries() const = 0;
    [[nodiscard]] virtual seconds boundary(const layer&, const layer&, const work_kind&, const device&) const = 0;
    [[nodiscard]] virtual double largest_batch(const work&, const device&) const = 0;
    virtual void times_s(const planning_graph&, const work_kind&, const device&, double* by_layer) const = 0;
    [[nodiscard]] virtual double total_s(const planning_graph&, std::span<const layer_id>, const work_kind&, const device&,
                                         double before) const = 0;
  };
  template <class M>
  struct holder final : interface {
    explicit holder(M m) : model(std::move(m)) {}
    [[nodiscard]] seconds time(const work& w, const device& d) const override { return model.time(w, d); }
    [[nodiscard]] bool times_optimizer() const override {
      if constexpr (requires { model.times_optimizer(); }) return model.times_optimizer();
      else return times_optimizer_step<M>;
    }
    [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const override {
      if constexpr (times_optimizer_step<M>) return model.optimizer_step(l, d);
      return {};
    }
    [[nodiscard]] bool times_boundaries() const override {
      if constexpr (requires { model.times_boundaries(); }) return model.times_boundaries();
      else return times_boundary<M>;
    }
    [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const override {
      if constexpr (times_boundary<M>) return model.boundary(before, after, k, d);
      return {};
    }
    [[nodiscard]] double largest_batch(const work& w, const device& d) const override { return checked_largest_batch(model, w, d); }
    void times_s(const planning_graph& graph, const work_kind& k, const device& d, double* by_layer) const override {
      if constexpr (requires { model.times_s(graph, k, d, by_layer); }) {
        model.times_s(graph, k, d, by_layer);
      } else {
        for (const layer& l : graph.layers()) by_layer[l.id.index()] = checked_time_s(model, k.of(l), d);
      }
    }
    [[nodiscard]] double total_s(const planning_graph& graph, std::span<const layer_id> layers, const work_kind& k, const device& d,
                                 double before) const override {
      if constexpr (requires { model.total_s(graph, layers, k, d, before); }) {
        return model.total_s(graph, layers, k, d, before);
      } else {
        return detail::add_run(
            before, layers, times_boundaries(), [&](layer_id l) { return checked_time_s(model, k.of(graph[l]), d); },
            [&](layer_id l, layer_id next) {
              if constexpr (times_boundary<M>) return checked_boundary_s(model, graph[l], graph[next], k, d);
              return 0.0;
            });
      }
    }
    M model;
  };
  std::shared_ptr<const interface> model_;
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

}  // namespace hetplan
