// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A cost model chosen at run time.

#include <memory>
#include <utility>

#include <hetplan/cost/cost_model.hpp>

namespace HETPLAN_NAMESPACE {

/// Holds any cost model by value; copies share it (models are pure). One virtual call per question.
class any_cost_model {
 public:
  template <cost_model M>
    requires(!std::same_as<M, any_cost_model>)
  any_cost_model(M model) : model_(std::make_shared<holder<M>>(std::move(model))) {
    static_assert(check_cost_model<M>());
  }

  [[nodiscard]] seconds time(const work& w, const device& d) const { return model_->time(w, d); }
  /// 0 s where the model that it holds has no step of its own.
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const { return model_->optimizer_step(l, d); }
  /// Infinite where the model that it holds sets no limit.
  [[nodiscard]] double largest_batch(const work& w, const device& d) const { return model_->largest_batch(w, d); }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual seconds time(const work&, const device&) const = 0;
    [[nodiscard]] virtual seconds optimizer_step(const layer&, const device&) const = 0;
    [[nodiscard]] virtual double largest_batch(const work&, const device&) const = 0;
  };
  template <class M>
  struct holder final : interface {
    explicit holder(M m) : model(std::move(m)) {}
    [[nodiscard]] seconds time(const work& w, const device& d) const override { return model.time(w, d); }
    [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const override {
      if constexpr (times_optimizer_step<M>) return model.optimizer_step(l, d);
      return {};
    }
    [[nodiscard]] double largest_batch(const work& w, const device& d) const override { return checked_largest_batch(model, w, d); }
    M model;
  };
  std::shared_ptr<const interface> model_;
};

/// Adapts a model whose `time` returns plain seconds as a double; its optimizer's step, if it has one, must do so too.
template <class M>
struct assume_si {
  static_assert(
      !names_optimizer_step<M> || requires(const M& m, const layer& l, const device& d) {
        { m.optimizer_step(l, d) } -> std::same_as<double>;
      }, "the optimizer step of a model in assume_si is: double optimizer_step(const hetplan::layer&, const hetplan::device&) const");
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

}  // namespace HETPLAN_NAMESPACE
