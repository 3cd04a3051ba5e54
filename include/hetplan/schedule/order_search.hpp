// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Linear programs over orders of events: the best rates of an order, and of the orders around it.

#include <cstdint>

#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/event_order.hpp>
#include <hetplan/schedule/network_schedule.hpp>
#include <hetplan/solve/any_lp_solver.hpp>

namespace HETPLAN_NAMESPACE::schedule {

struct order_search_options {
  long long solves = 20;  ///< linear programs, at most; 1 keeps to the given order
  std::uint64_t seed = 1;
  std::size_t most_rows = 500;  ///< of a program: larger runs are solved in windows; cost grows with about the cube of the rows
};

/// The answer of order_search.
struct order_search_result {
  network_schedule schedule;  ///< the solver's rates, replayed; the given schedule, or the best so far, where `stopped`
  event_order order;          ///< what the rates keep to; empty if no program was solved
};

/// Solves the linear program of a run's order, then those of neighbouring orders, each from the basis before; a run that is
/// too large for one program, window by window.
///
/// @param given  a schedule of whole transfers: local_search with most_chunks = 1, a list schedule, or uncontrolled.
/// @return       rates that end no later than `given`. Status stopped, with the best so far: the solver gave up or was
///               wrong.
/// Complexity    options.solves programs.  Determinism  the solver's, and the seed.
/// Source        Dora, section 4.2, eq. 6.
[[nodiscard]] order_search_result order_search(const cep_graph& cep, const network_schedule& given, const any_lp_solver& solver,
                                               const order_search_options& options = {});

}  // namespace HETPLAN_NAMESPACE::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/order_search.ipp>
#endif
