// SPDX-License-Identifier: BSL-1.0
#pragma once
/// GLPK as an lp_solver and a milp_solver. GLPK is GPL-3: only this header includes it, and no header includes this one.

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <glpk.h>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan {
namespace detail {

/// Runs `work` with GLPK silent and within `max_memory_MB`; every call into GLPK happens in here. Returns false after a fatal
/// error, which would have aborted the process; GLPK then holds nothing in this thread. Hooks and memory limits are reset.
///
/// A fatal error leaves GLPK by longjmp: `work` and its callees must not hold objects with destructors.
template <class Work>
[[nodiscard]] bool guard_glpk(int max_memory_MB, const Work& work) {
  if (max_memory_MB < 1) throw invalid_input("glpk: max_memory_MB = " + std::to_string(max_memory_MB) + "; expected >= 1");
  struct environment {  // GLPK creates one per thread that uses it and never frees it
    ~environment() { glp_free_env(); }
  };
  thread_local const environment owner;
  static_cast<void>(owner);
  std::jmp_buf back;
  if (setjmp(back) != 0) {  // NOLINT(cert-err52-cpp): the only way out that GLPK has
    glp_free_env();
    return false;
  }
  glp_error_hook([](void* to) { std::longjmp(*static_cast<std::jmp_buf*>(to), 1); }, &back);  // NOLINT(cert-err52-cpp)
  glp_term_hook([](void*, const char*) { return 1; }, nullptr);  // GLPK prints errors whatever glp_term_out says
  glp_term_out(GLP_OFF);
  glp_mem_limit(max_memory_MB);
  work();
  glp_mem_limit(std::numeric_limits<int>::max());
  glp_term_hook(nullptr, nullptr);
  glp_error_hook(nullptr, nullptr);
  return true;
}

/// Copies a problem into GLPK. Allocates in advance, so that nothing is allocated inside guard_glpk.
class glpk_loader {
 public:
  explicit glpk_loader(const lp_problem& p) : problem_(p) {
    std::size_t longest = 0;
    for (const lp_problem::row& r : p.rows) longest = std::max(longest, r.terms.size());
    index_.resize(longest + 1);  // GLPK counts from 1
    value_.resize(longest + 1);
  }

  void load(glp_prob* lp) {
    const lp_problem& p = problem_;
    glp_set_obj_dir(lp, GLP_MIN);
    if (!p.objective.empty()) glp_add_cols(lp, static_cast<int>(p.objective.size()));
    for (std::size_t c = 0; c < p.objective.size(); ++c) {
      const int j = static_cast<int>(c) + 1;
      glp_set_obj_coef(lp, j, p.objective[c]);
      glp_set_col_bnds(lp, j, kind(p.lower[c], p.upper[c]), p.lower[c], p.upper[c]);
    }
    if (!p.rows.empty()) glp_add_rows(lp, static_cast<int>(p.rows.size()));
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
      const int i = static_cast<int>(r) + 1;
      std::size_t n = 0;
      for (const auto& [c, v] : p.rows[r].terms) {
        ++n;
        index_[n] = c + 1;
        value_[n] = v;
      }
      glp_set_mat_row(lp, i, static_cast<int>(n), index_.data(), value_.data());
      glp_set_row_bnds(lp, i, kind(p.rows[r].lower, p.rows[r].upper), p.rows[r].lower, p.rows[r].upper);
    }
  }

  static int kind(double low, double high) {
    if (std::isinf(low)) return std::isinf(high) ? GLP_FR : GLP_UP;
    if (std::isinf(high)) return GLP_LO;
    return low == high ? GLP_FX : GLP_DB;
  }

 private:
  const lp_problem& problem_;
  std::vector<int> index_;
  std::vector<double> value_;
};

}  // namespace detail

/// Simplex by GLPK, silent, one environment per thread: primal, or dual from a start that is dual but not primal feasible. A
/// fatal error, such as more than `max_memory_MB`, leaves the problem unsolved and ends all that the thread holds of GLPK.
///
/// Throws       invalid_input before any call into GLPK, which aborts the process on a bad index and answers "optimal" to NaN.
/// Determinism  yes: limited in iterations, never in time.
struct glpk_lp {
  int max_iterations = 20000;
  int max_memory_MB = std::numeric_limits<int>::max();

  [[nodiscard]] lp_solution solve(const lp_problem& p) const { return solve(p, lp_basis{}); }

  [[nodiscard]] lp_solution solve(const lp_problem& p, const lp_basis& start) const {
    check_lp_problem(p);
    detail::glpk_loader loader(p);
    lp_solution s;
    s.x.resize(p.objective.size());
    s.row_duals.resize(p.rows.size());
    s.basis.columns.resize(p.objective.size());
    s.basis.rows.resize(p.rows.size());
    // A singular start may be fatal to GLPK's factorization.
    if (could_be_basis(start, p) && detail::guard_glpk(max_memory_MB, [&] { run(loader, &start, s); })) return s;
    return detail::guard_glpk(max_memory_MB, [&] { run(loader, nullptr, s); }) ? s : lp_solution{};
  }

 private:
  void run(detail::glpk_loader& loader, const lp_basis* start, lp_solution& s) const {
    glp_prob* lp = glp_create_prob();
    loader.load(lp);
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.it_lim = max_iterations;
    if (start != nullptr) place(lp, *start, options);
    const int failed = glp_simplex(lp, &options);
    if (start != nullptr && failed != 0 && failed != GLP_EITLIM) {
      glp_std_basis(lp);
      options.meth = GLP_PRIMAL;
      glp_simplex(lp, &options);
    }
    read(lp, s);
    glp_delete_prob(lp);
  }

  /// Sets the start basis, or the standard basis if the start is singular.
  static void place(glp_prob* lp, const lp_basis& start, glp_smcp& options) {
    for (std::size_t c = 0; c < start.columns.size(); ++c) glp_set_col_stat(lp, static_cast<int>(c) + 1, to_glpk(start.columns[c]));
    for (std::size_t r = 0; r < start.rows.size(); ++r) glp_set_row_stat(lp, static_cast<int>(r) + 1, to_glpk(start.rows[r]));
    if (glp_warm_up(lp) != 0) {
      glp_std_basis(lp);
    } else if (glp_get_dual_stat(lp) == GLP_FEAS && glp_get_prim_stat(lp) != GLP_FEAS) {
      options.meth = GLP_DUALP;
    }
  }

  /// Returns GLPK's code. GLPK itself moves a nonbasic position to a limit that exists.
  static int to_glpk(lp_position p) {
    switch (p) {
      case lp_position::basic: return GLP_BS;
      case lp_position::at_upper: return GLP_NU;
      case lp_position::free: return GLP_NF;
      default: return GLP_NL;
    }
  }
  static lp_position from_glpk(int stat) {
    switch (stat) {
      case GLP_BS: return lp_position::basic;
      case GLP_NU: return lp_position::at_upper;
      case GLP_NF: return lp_position::free;
      default: return lp_position::at_lower;
    }
  }

  static void read(glp_prob* lp, lp_solution& s) {
    switch (glp_get_status(lp)) {
      case GLP_OPT: s.status = lp_status::optimal; break;
      case GLP_NOFEAS: s.status = lp_status::infeasible; break;
      case GLP_UNBND: s.status = lp_status::unbounded; break;
      default: s.status = glp_get_prim_stat(lp) == GLP_NOFEAS ? lp_status::infeasible : lp_status::unsolved; break;
    }
    s.objective = glp_get_obj_val(lp);
    s.iterations = glp_get_it_cnt(lp);
    for (std::size_t c = 0; c < s.x.size(); ++c) {
      const int j = static_cast<int>(c) + 1;
      s.x[c] = glp_get_col_prim(lp, j);
      s.basis.columns[c] = from_glpk(glp_get_col_stat(lp, j));
    }
    for (std::size_t r = 0; r < s.row_duals.size(); ++r) {
      const int i = static_cast<int>(r) + 1;
      s.row_duals[r] = glp_get_row_dual(lp, i);
      s.basis.rows[r] = from_glpk(glp_get_row_stat(lp, i));
    }
  }
};

/// Branch and cut by GLPK, silent, one environment per thread. A fatal error of GLPK leaves the problem unsolved, as in
/// glpk_lp. The other columns are solved again with the integers of the result, or of a start, fixed.
///
/// Throws       invalid_input before any call into GLPK.
/// Determinism  yes, unless `time_limit` strikes: the other limits count nodes and pivots.
struct glpk_milp {
  long long max_nodes = 100'000;
  int max_iterations = 1'000'000;  ///< pivots of all nodes together
  int max_memory_MB = std::numeric_limits<int>::max();
  seconds time_limit = seconds(std::numeric_limits<double>::infinity());  ///< of the search, over all attempts of `solve` together

  [[nodiscard]] milp_solution solve(const milp_problem& p) const { return solve(p, std::vector<double>{}); }

  [[nodiscard]] milp_solution solve(const milp_problem& p, const std::vector<double>& start) const {
    check_milp_problem(p);
    if (!(time_limit.value() >= 0)) throw invalid_input("glpk_milp: time_limit = " + to_text(time_limit.value()) + " s; expected >= 0");
    const glpk_lp rest{.max_iterations = max_iterations, .max_memory_MB = max_memory_MB};
    const detail::time_left left(time_limit);
    const milp_solution begun = detail::begin_with(rest, p, start);
    return detail::no_worse_than(begun, detail::solve_exactly(rest, p, [&](const milp_problem& q, double tolerance) {
                                   return attempt(q, tolerance, left, begun.x);
                                 }));
  }

 private:
  struct search {
    long long max_nodes;
    int max_iterations;
    const double* start = nullptr;  ///< solution not yet passed to GLPK, from index 1 on
    long long nodes = 0;
    double bound = -std::numeric_limits<double>::infinity();
  };

  [[nodiscard]] milp_solution attempt(const milp_problem& p, double tolerance, const detail::time_left& left,
                                      const std::vector<double>& start) const {
    detail::glpk_loader loader(p.relaxation);
    std::vector<double> from_one{0};
    from_one.insert(from_one.end(), start.begin(), start.end());
    search state{.max_nodes = max_nodes, .max_iterations = max_iterations, .start = start.empty() ? nullptr : from_one.data()};
    milp_solution s;
    s.x.resize(p.relaxation.objective.size());
    if (!detail::guard_glpk(max_memory_MB, [&] { run(p, tolerance, left, loader, state, s); })) return {};
    s.nodes = state.nodes;
    if (s.status == milp_status::feasible || s.status == milp_status::unsolved) s.bound = state.bound;
    return s;
  }

  /// Callback at every step of the search: the best open node bounds all solutions still to be found.
  static void watch(glp_tree* tree, void* info) {
    search& state = *static_cast<search*>(info);
    int nodes = 0;
    glp_ios_tree_size(tree, nullptr, nullptr, &nodes);
    state.nodes = nodes;
    const int best = glp_ios_best_node(tree);
    if (best != 0) state.bound = std::max(state.bound, glp_ios_node_bound(tree, best));
    if (state.start != nullptr && glp_ios_reason(tree) == GLP_IHEUR) {
      glp_ios_heur_sol(tree, state.start);  // GLPK does not check the rows: the start must be a solution
      state.start = nullptr;
    }
    if (nodes > state.max_nodes || glp_get_it_cnt(glp_ios_get_prob(tree)) >= state.max_iterations) glp_ios_terminate(tree);
  }

  [[nodiscard]] static int milliseconds(const detail::time_left& left) {
    return static_cast<int>(std::min(left().value() * 1e3, static_cast<double>(std::numeric_limits<int>::max())));
  }

  void run(const milp_problem& p, double tolerance, const detail::time_left& left, detail::glpk_loader& loader, search& state,
           milp_solution& s) const {
    glp_prob* lp = glp_create_prob();
    loader.load(lp);
    for (const int c : p.integers) glp_set_col_kind(lp, c + 1, GLP_IV);
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    simplex.msg_lev = GLP_MSG_OFF;
    simplex.it_lim = max_iterations;
    simplex.tm_lim = milliseconds(left);
    glp_simplex(lp, &simplex);
    switch (glp_get_status(lp)) {
      case GLP_OPT: branch(lp, tolerance, milliseconds(left), state, s); break;
      case GLP_UNBND: s.status = milp_status::unbounded; break;
      default: s.status = glp_get_prim_stat(lp) == GLP_NOFEAS ? milp_status::infeasible : milp_status::unsolved; break;
    }
    if (s.status == milp_status::optimal || s.status == milp_status::feasible) {
      s.objective = glp_mip_obj_val(lp);
      for (std::size_t c = 0; c < s.x.size(); ++c) s.x[c] = glp_mip_col_val(lp, static_cast<int>(c) + 1);
    }
    glp_delete_prob(lp);
  }

  static void branch(glp_prob* lp, double tolerance, int time_limit_ms, search& state, milp_solution& s) {
    state.bound = glp_get_obj_val(lp);
    glp_iocp options;
    glp_init_iocp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.tol_int = tolerance;
    options.tm_lim = time_limit_ms;
    options.mir_cuts = options.cov_cuts = options.clq_cuts = GLP_ON;
    options.cb_func = watch;
    options.cb_info = &state;
    glp_intopt(lp, &options);
    switch (glp_mip_status(lp)) {
      case GLP_OPT: s.status = milp_status::optimal; break;
      case GLP_FEAS: s.status = milp_status::feasible; break;
      case GLP_NOFEAS: s.status = milp_status::infeasible; break;
      default: break;
    }
  }
};

static_assert(check_lp_solver<glpk_lp>() && warm_starts_lp<glpk_lp>);
static_assert(check_milp_solver<glpk_milp>() && starts_milp<glpk_milp>);

}  // namespace hetplan
