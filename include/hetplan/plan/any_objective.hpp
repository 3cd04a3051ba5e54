// SPDX-License-Identifier: BSL-1.0
#pragma once
/// An objective chosen at run time.

#include <concepts>
#include <memory>
#include <utility>

#include <hetplan/plan/objective.hpp>

namespace hetplan {

/// Holds any objective by value; copies share it (objectives are pure). One virtual call per score.
class any_objective {
 public:
  template <class O>
    requires(!std::same_as<O, any_objective>)
  any_objective(O o) : monotone_(monotone_objective<O>) {
    static_assert(check_objective<O>());
    if constexpr (objective<O>) objective_ = std::make_shared<holder<O>>(std::move(o));
  }

  /// Can it steer a search in parts? See monotone_objective.
  [[nodiscard]] bool monotone() const { return monotone_; }
  [[nodiscard]] double score(const evaluation& e) const { return objective_->score(e); }
  /// 0 where the objective that it holds is not monotone.
  [[nodiscard]] double score(seconds response, joules energy) const { return objective_->score(response, energy); }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual double score(const evaluation&) const = 0;
    [[nodiscard]] virtual double score(seconds, joules) const = 0;
  };
  template <class O>
  struct holder final : interface {
    explicit holder(O o) : objective(std::move(o)) {}
    [[nodiscard]] double score(const evaluation& e) const override { return hetplan::score(objective, e); }
    [[nodiscard]] double score([[maybe_unused]] seconds response, [[maybe_unused]] joules energy) const override {
      if constexpr (monotone_objective<O>) return objective.score(response, energy);
      else return 0;
    }
    O objective;
  };
  std::shared_ptr<const interface> objective_;
  bool monotone_;
};

static_assert(check_objective<any_objective>());

}  // namespace hetplan
