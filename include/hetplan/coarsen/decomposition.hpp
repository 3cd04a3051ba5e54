// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Decompositions, which say where a search may cut a model: the concept, and those that ship.

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

/// Returns the graph of blocks as maximal serial chains, listed so that every edge points forward.
///
/// Neighbouring blocks u, v share a chain exactly if v is u's only successor and u is v's only predecessor; parallel edges between two
/// blocks count once. The DAG need not be series-parallel.
///
/// @param blocks  Partition of the model's layers, in any numbering, whose quotient graph has no cycle.
/// Complexity     O(layers log layers + edges log edges).
/// Determinism    a topological order of the chains: always the one with the smallest block that is ready.
/// Throws         invalid_input (no partition of the model's layers; the quotient graph has a cycle).
/// Source         Dora sec. 4.1, serial decomposition.
[[nodiscard]] layer_sequence serial(const planning_graph& model, const coarsen::blocks& blocks);

/// Returns the serial chains of single layers.
[[nodiscard]] inline layer_sequence serial(const planning_graph& model) { return serial(model, coarsen::each_layer(model)); }

/// Where a search may cut a model: a callable that puts all layers into a sequence of blocks, and cuts the sequence into chains. A stage
/// is a piece of one chain or a run of whole chains; the search never splits a block. Pure.
///
/// * Every layer is in one block, every edge points forward or stays inside a block, and chains begin at ascending blocks, from block 0
///   on. Anything else throws `invalid_model` with the layer, edge or chain. Blocks need not be sorted.
/// * A single chain allows every cut between blocks. Fewer blocks make the search faster.
/// * `partitioner_options::rows` of `recipes::dora` are decompositions, searched one after the other; equal ones are searched once.
///   Default: `usual_rows()`, which are `joined_chains`, `serial_chains`, `light_row`.
/// * Polishing moves the cuts of the best plans block by block, so that stages stay stages of a sequence. With
///   `polish_boundaries::of_layers`, as for the usual rows, it moves them layer by layer, also into blocks.
///
/// Ships: `serial_chains` (Dora's), `joined_chains` (the same blocks as one chain), `light_row` (the model's own numbering, cut where few
/// bytes cross), `any_decomposition` (chosen at run time).
template <class D>
concept decomposition = requires(const D& d, const planning_graph& model) {
  { d(model) } -> std::same_as<layer_sequence>;
};

template <class D>
consteval bool check_decomposition() {
  static_assert(decomposition<D>, "decomposition needs: hetplan::layer_sequence operator()(const hetplan::planning_graph&) const");
  return decomposition<D>;
}

/// Maximal serial chains of blocks below `merge_share` of all parameters and of all FLOP: the two substates of Dora.
/// Source  Dora, section 4.1. Deviation: blocks merge by parameters and FLOP (coarsen/merge_small.hpp).
struct serial_chains {
  double merge_share = 0.05;
  [[nodiscard]] layer_sequence operator()(const planning_graph& model) const;
};

/// The blocks of serial_chains as one chain: a stage may also hold pieces of neighbouring chains. Source: ours.
struct joined_chains {
  double merge_share = 0.05;
  [[nodiscard]] layer_sequence operator()(const planning_graph& model) const;
};

/// The model's own numbering in at most `most` blocks that end where few bytes cross (graph/layer_sequence.hpp). Source: ours.
struct light_row {
  std::size_t most = 200;
  [[nodiscard]] layer_sequence operator()(const planning_graph& model) const;
};

/// Returns the sequence if it is a decomposition of the model.
/// Throws      invalid_model: the layer that is lost or repeated, the edge that points back, or the chain and where it begins.
/// Complexity  O(layers + edges).
[[nodiscard]] layer_sequence checked(layer_sequence sequence, const planning_graph& model);

/// Type-erased decomposition, held by value; its results go through `checked`. Throws invalid_input if made from an empty function.
class any_decomposition {
 public:
  template <class D>
    requires(!std::same_as<D, any_decomposition>)
  any_decomposition(D d) {
    static_assert(check_decomposition<D>());
    if constexpr (decomposition<D>) decompose_ = std::move(d);
    require_function(decompose_, "any_decomposition", "a decomposition, such as joined_chains{}");
  }

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
