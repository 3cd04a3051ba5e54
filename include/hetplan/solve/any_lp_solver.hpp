// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A linear-program solver chosen at run time.

#include <concepts>
#include <memory>
#include <utility>

#include <hetplan/solve/lp.hpp>

namespace hetplan {

/// Holds any solver by value; copies share it. Of `no_lp`, or nothing, it leaves every problem unsolved.
class any_lp_solver {
 public:
  any_lp_solver() = default;
  any_lp_solver(no_lp) {}
  template <class S>
    requires(!std::same_as<S, any_lp_solver>)
  any_lp_solver(S solver) {
    static_assert(check_lp_solver<S>());
    if constexpr (lp_solver<S>) solver_ = std::make_shared<holder<S>>(std::move(solver));
  }

  /// Is there a solver at all?
  [[nodiscard]] bool exists() const { return solver_ != nullptr; }
  [[nodiscard]] lp_solution solve(const lp_problem& p) const { return solver_ ? solver_->solve(p) : lp_solution{}; }
  /// From nothing where the solver that it holds takes no start.
  [[nodiscard]] lp_solution solve(const lp_problem& p, const lp_basis& start) const {
    return solver_ ? solver_->solve(p, start) : lp_solution{};
  }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual lp_solution solve(const lp_problem&) const = 0;
    [[nodiscard]] virtual lp_solution solve(const lp_problem&, const lp_basis&) const = 0;
  };
  template <class S>
  struct holder final : interface {
    explicit holder(S s) : solver(std::move(s)) {}
    [[nodiscard]] lp_solution solve(const lp_problem& p) const override { return solver.solve(p); }
    [[nodiscard]] lp_solution solve(const lp_problem& p, const lp_basis& start) const override { return solve_from(solver, p, start); }
    S solver;
  };
  std::shared_ptr<const interface> solver_;
};

static_assert(check_lp_solver<any_lp_solver>());

}  // namespace hetplan
