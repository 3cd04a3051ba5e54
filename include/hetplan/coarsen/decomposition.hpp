// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where a search may cut a model: the door for decompositions, and the ones that ship.

#include <concepts>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::decompose {

// A DAG as a row of serial chains.

/// Splits the graph of blocks into maximal serial chains and lists them so that every edge points forward.
///
/// Neighbouring blocks u, v share a chain exactly if v is u's only successor and u is v's only predecessor;
/// edges of the model between the same two blocks count once. The DAG need not be series-parallel.
///
/// @param blocks    a partition of the model's layers, in any numbering, whose quotient has no cycle.
/// @return          chains in a topological order: always the one with the smallest block that is ready.
/// Complexity       O(layers log layers + edges log edges).
/// Determinism      see @return.
/// Throws           invalid_input (no partition of the model's layers; the quotient has a cycle).
/// Source           Dora sec. 4.1, serial decomposition.
[[nodiscard]] layer_sequence serial(const planning_graph& model, const coarsen::blocks& blocks);

/// Every layer a block.
[[nodiscard]] inline layer_sequence serial(const planning_graph& model) { return serial(model, coarsen::each_layer(model)); }

/// Where a search may cut a model: a callable that puts all layers into blocks in a row, and the row into chains. A stage is a piece of
/// one chain or a run of whole chains; a block is never split by the search. Pure.
///
/// * Every layer stands in one block, every edge leads forward or stays inside a block, chains begin at ascending blocks, the first at 0.
///   What is not so throws `invalid_model` with the layer, the edge or the chain. Blocks need not be sorted.
/// * One chain allows every cut between blocks. Fewer blocks are a faster search.
/// * `partitioner_options::rows` of `recipes::dora` are decompositions, searched one after the other; those that are equal, once. Without
///   any, `usual_rows()`: `joined_chains`, `serial_chains`, `light_row`.
/// * Polishing moves the cuts of the best plans block by block, so that every stage stays one of a row; with
///   `polish_boundaries::of_layers`, as behind the usual rows, layer by layer, also into blocks.
///
/// Ships: `serial_chains` (Dora's), `joined_chains` (the same row as one chain), `light_row` (the model's own numbering, cut where little
/// crosses), `any_decomposition` (chosen at run time).
template <class D>
concept decomposition = requires(const D& d, const planning_graph& model) {
  { d(model) } -> std::same_as<layer_sequence>;
};

template <class D>
consteval bool check_decomposition() {
  static_assert(decomposition<D>, "decomposition needs: hetplan::layer_sequence operator()(const hetplan::planning_graph&) const");
  return decomposition<D>;
}

/// Maximal serial chains of blocks below `merge_share` of all parameters and of all FLOP: the paper's two substates.
///
/// Source  Dora, section 4.1. Deviation: blocks merge by parameters and FLOP (coarsen/merge_small.hpp).
struct serial_chains {
  double merge_share = 0.05;
  [[nodiscard]] layer_sequence operator()(const planning_graph& model) const;
};

/// The same row as one chain: a stage may also hold pieces of neighbouring chains. Source: ours.
struct joined_chains {
  double merge_share = 0.05;
  [[nodiscard]] layer_sequence operator()(const planning_graph& model) const;
};

/// The model's own numbering in at most `most` blocks that end where little crosses (graph/layer_sequence.hpp). Source: ours.
struct light_row {
  std::size_t most = 200;
  [[nodiscard]] layer_sequence operator()(const planning_graph& model) const;
};

/// The sequence if it is one of the model's.
///
/// Throws      invalid_model: which layer is lost or stands twice, which edge leads back, which chain begins where.
/// Complexity  O(layers + edges).
[[nodiscard]] layer_sequence checked(layer_sequence sequence, const planning_graph& model);

/// Holds any decomposition by value; what it answers is checked. Of an empty one: invalid_input.
class any_decomposition {
 public:
  template <class D>
    requires(!std::same_as<D, any_decomposition>)
  any_decomposition(D d) {
    static_assert(check_decomposition<D>());
    if constexpr (decomposition<D>) decompose_ = std::move(d);
    require_function(decompose_, "any_decomposition", "a decomposition, such as joined_chains{}");
  }

  /// Throws  invalid_model: see checked.
  [[nodiscard]] layer_sequence operator()(const planning_graph& model) const { return checked(decompose_(model), model); }

 private:
  std::function<layer_sequence(const planning_graph&)> decompose_;
};

static_assert(check_decomposition<serial_chains>() && check_decomposition<joined_chains>() && check_decomposition<light_row>() &&
              check_decomposition<any_decomposition>());

}  // namespace hetplan::decompose

#ifndef HETPLAN_SEPARATE
#include <hetplan/coarsen/decomposition.ipp>
#endif
