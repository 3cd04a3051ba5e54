// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Model profiles of Galvatron (computation and memory) as a chain.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

/// Forward seconds for a sample on one device, by batch size; one entry of batch 0 for a file that does not tell batch sizes.
using galvatron_times = std::map<int, double>;

/// A file `computation_profiling_*.json`.
struct galvatron_computation {
  std::string file;
  std::map<std::string, std::vector<galvatron_times>> layers;  ///< by sequence length ("" if the file does not tell): one per type
  std::map<std::string, galvatron_times> others;               ///< by sequence length: embeddings and head together
};

/// A file `memory_profiling_*.json`, in bytes and for one device without tensor parallelism.
struct galvatron_memory {
  struct layer_type {
    double weights = 0;   ///< fp32
    double kept = 0;      ///< of a sample
    double boundary = 0;  ///< what goes from layer to layer for a sample; 0: not told
  };
  std::string file;
  std::map<std::string, std::vector<layer_type>> layers;                ///< by sequence length
  std::map<std::string, std::pair<double, double>> first, last, whole;  ///< others: weights and kept bytes, by stage and sequence length
};

/// Reads `layertype_I` or `layertype_I_bszB_seqS`, and `layertype_other...`, in ms for a sample's forward. Other keys (`layernum...`) are
/// ignored.
///
/// Throws  invalid_input `FILE: /pointer: expected X, got Y`: no layer type, types that are missing below the largest, numbers below 0,
/// keys
///         that cannot be read.
/// Source  the files under galvatron/models/*/configs of github.com/PKU-DAIR/Hetu-Galvatron; checked: a type's time is the difference of
///         two models' times over layers and samples.
[[nodiscard]] galvatron_computation read_galvatron_computation(const io::json_document& d);

/// Reads `layertype_I[_sp]` (`parameter_size`, `tp_activation_per_bsz_dict`: MB of 2^20 bytes) and `other_memory_pp_{off,on_first,on_last}`
/// (`model_states`: 4 times the weights; `activation`), each by sequence length where the file tells it. Sequence parallel entries (`_sp`)
/// count where there are no others.
///
/// Throws  as read_galvatron_computation.
/// Source  as read_galvatron_computation: model states of a layer are 16 bytes a parameter, its `parameter_size` 4.
[[nodiscard]] galvatron_memory read_galvatron_memory(const io::json_document& d);

struct galvatron_choice {
  std::string device_kind = "galvatron";
  std::vector<int> layers = {};                  ///< of each type
  std::string sequence = "";                     ///< length, as in the file; "": the only one
  std::optional<bytes> boundary = std::nullopt;  ///< bytes from a layer to the next for a sample, in place of the file's
};

/// Returns the chain first, layers of each type, last. First and last share the times of what is in no layer in halves, and have the
/// weights and activations of first and last stages (or half of the whole each). The backward takes twice the forward, as Galvatron
/// assumes. Transfers carry what a checkpoint of the reading layer keeps.
///
/// Throws  invalid_input that names the file: a sequence length that is not there, or one of several not chosen; counts of layers other
/// than
///         one for each type; types that one file lacks; no boundary.
/// Source  Miao et al., "Galvatron", VLDB 2023, and its published cost model (backward = 2 forward, others in halves).
[[nodiscard]] planning_graph galvatron_chain(const galvatron_computation& times, const galvatron_memory& memory,
                                             const galvatron_choice& choice, const std::string& name);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/galvatron_profile.ipp>
#endif
