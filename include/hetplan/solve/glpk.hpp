// SPDX-License-Identifier: BSL-1.0
#pragma once
/// GLPK behind the lp_solver door. GLPK is GPL-3: only this header includes it, and nothing includes this one.

#include <memory>
#include <vector>

#include <glpk.h>

#include <hetplan/solve/lp.hpp>

namespace hetplan {

/// Primal simplex by GLPK, silent, one environment per thread.
///
/// Throws       invalid_input before any call into GLPK, which aborts the process on a bad index and
///              answers "optimal" to a NaN.
/// Determinism  yes: limited in iterations, never in time.
struct glpk_lp {
  int max_iterations = 20000;

  [[nodiscard]] lp_solution solve(const lp_problem& p) const {
    check_lp_problem(p);
    free_environment_with_thread();
    glp_term_out(GLP_OFF);
    const std::unique_ptr<glp_prob, void (*)(glp_prob*)> owner(glp_create_prob(), [](glp_prob* lp) { glp_delete_prob(lp); });
    glp_prob* lp = owner.get();
    load(lp, p);
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.it_lim = max_iterations;
    glp_simplex(lp, &options);
    return read(lp, p);
  }

 private:
  /// GLPK makes an environment for each thread that uses it and leaves it behind.
  static void free_environment_with_thread() {
    struct environment {
      ~environment() { glp_free_env(); }
    };
    thread_local const environment owner;
    static_cast<void>(owner);
  }

  /// GLPK's kind of limits: free, one-sided, double or fixed.
  static int kind(double low, double high) {
    if (std::isinf(low)) return std::isinf(high) ? GLP_FR : GLP_UP;
    if (std::isinf(high)) return GLP_LO;
    return low == high ? GLP_FX : GLP_DB;
  }

  static void load(glp_prob* lp, const lp_problem& p) {
    glp_set_obj_dir(lp, GLP_MIN);
    if (!p.objective.empty()) glp_add_cols(lp, static_cast<int>(p.objective.size()));
    for (std::size_t c = 0; c < p.objective.size(); ++c) {
      const int j = static_cast<int>(c) + 1;
      glp_set_obj_coef(lp, j, p.objective[c]);
      glp_set_col_bnds(lp, j, kind(p.lower[c], p.upper[c]), p.lower[c], p.upper[c]);
    }
    if (!p.rows.empty()) glp_add_rows(lp, static_cast<int>(p.rows.size()));
    std::vector<int> index;
    std::vector<double> value;
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
      const int i = static_cast<int>(r) + 1;
      index.assign(1, 0);  // GLPK counts from 1
      value.assign(1, 0);
      for (const auto& [c, v] : p.rows[r].terms) {
        index.push_back(c + 1);
        value.push_back(v);
      }
      glp_set_mat_row(lp, i, static_cast<int>(index.size()) - 1, index.data(), value.data());
      glp_set_row_bnds(lp, i, kind(p.rows[r].lower, p.rows[r].upper), p.rows[r].lower, p.rows[r].upper);
    }
  }

  static lp_solution read(glp_prob* lp, const lp_problem& p) {
    lp_solution s;
    switch (glp_get_status(lp)) {
      case GLP_OPT: s.status = lp_status::optimal; break;
      case GLP_NOFEAS: s.status = lp_status::infeasible; break;
      case GLP_UNBND: s.status = lp_status::unbounded; break;
      default: s.status = glp_get_prim_stat(lp) == GLP_NOFEAS ? lp_status::infeasible : lp_status::unsolved; break;
    }
    s.objective = glp_get_obj_val(lp);
    for (std::size_t c = 0; c < p.objective.size(); ++c) s.x.push_back(glp_get_col_prim(lp, static_cast<int>(c) + 1));
    for (std::size_t r = 0; r < p.rows.size(); ++r) s.row_duals.push_back(glp_get_row_dual(lp, static_cast<int>(r) + 1));
    return s;
  }
};

static_assert(check_lp_solver<glpk_lp>());

}  // namespace hetplan
