// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What files say of a transformer: its architecture and how it is stored; and the planning graph of it.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/zoo/language_models.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/weight_formats.hpp>

namespace hetplan::exchange {

struct model_description {
  std::string name;
  std::string type;  ///< by the file's own name, as "llama"
  zoo::language_model model{};
  std::vector<zoo::transformer> blocks;                ///< each one
  precision dtype = precision::bf16;                   ///< of what is computed, and of what no format stores
  std::optional<zoo::weight_format> weights = {};      ///< quantised
  std::optional<zoo::weight_sizes> sizes = {};         ///< the tensors' bytes, by operator
  std::string family = {};                             ///< with sizes: model_facts::weight_format
  std::vector<std::pair<std::string, bytes>> ignored;  ///< tensors that the architecture does not have
};

struct import_choice {
  std::optional<int> tokens = {};       ///< per sample; default: 512, or the context if that is shorter
  std::optional<precision> dtype = {};  ///< in place of the file's
  std::string weights = {};             ///< a name of zoo::weight_formats, in place of the file's
  zoo::level level = zoo::level::parts;
  int lora = 0;  ///< see zoo::model_options
};

/// Returns the planning graph of a model; the built-in models come from the same builder.
///
/// @param d  marks the tensors that are used.
/// Throws    invalid_input (tokens outside the context; a format for weights that the file stores; tensors that are not the
/// architecture's).
[[nodiscard]] planning_graph graph_of(model_description& d, const import_choice& choice = {});

/// Returns the tensors that a graph of graph_of leaves out: those without a place in the architecture, and a head beside the embedding that
/// it shares. Names of operators stand for what is theirs.
[[nodiscard]] std::vector<std::pair<std::string, bytes>> left_out(const model_description& d);

/// Returns the format in which so many bits store a weight of a product, for devices' shares ("q4"); embedding and head have `others`.
/// Throws invalid_input for bits without a name.
[[nodiscard]] zoo::weight_format quantised(double bits, int nominal, double others);

/// Sizes of tensors by operator, collected from a file's tensors.
class tensor_sizes {
 public:
  /// Adds a tensor, or a part of it, to an operator.
  void add(const std::string& name, double size, double elements, bool counted = true);
  [[nodiscard]] zoo::weight_sizes take() && { return std::move(sizes_); }

 private:
  zoo::weight_sizes sizes_;
  std::map<std::string, bool, std::less<>> packed_;  ///< operators whose elements cannot be counted
};

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/model_description.ipp>
#endif
