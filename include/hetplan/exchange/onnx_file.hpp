// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A parsed ONNX model with inferred shapes, its nodes in topological order: shared by the reader and the writer of cut models.

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/core/version.hpp>
#include <hetplan/exchange/onnx_inference.hpp>
#include <hetplan/exchange/onnx_options.hpp>
#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

/// A checked ONNX file. Calls of functions and operators If are replaced by their bodies, shapes are inferred.
class onnx_file {
 public:
  /// Throws invalid_input: see read_onnx.
  onnx_file(std::string_view text, std::string file, const onnx_options& options);
  onnx_file(const onnx_file&) = delete;
  onnx_file& operator=(const onnx_file&) = delete;

  /// Returns the model without functions and operators If: their bodies are inlined.
  [[nodiscard]] const onnx::ModelProto& model() const { return model_; }
  [[nodiscard]] const onnx::NodeProto& node(std::size_t i) const { return model_.graph().node(static_cast<int>(i)); }
  /// Returns the nodes in topological order, which is the file's order if that is topological.
  [[nodiscard]] const std::vector<std::size_t>& order() const { return done_.order; }
  [[nodiscard]] const onnx_tensor& tensor(const std::string& name) const;
  [[nodiscard]] const onnx_lookup& tensors() const { return look_up_; }
  [[nodiscard]] const std::vector<std::string>& assumed() const { return done_.assumed; }
  /// True if a node computes only constants or shapes.
  [[nodiscard]] bool is_folded(std::size_t node) const { return folded_[node]; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  /// State of shape inference. Every branch of If under trial has its own.
  struct progress {
    std::vector<std::size_t> order;
    std::vector<std::string> assumed;
    std::vector<std::string> believed;  ///< tensors whose shapes are taken from the file
    std::size_t without_shape = 0;      ///< operators for which ONNX infers no shape
    std::size_t branches = 0;           ///< operators If
    std::vector<std::string> asked;     ///< names of the counted operators If for which the user chose a branch
  };
  /// A branch of If, inlined in place of its operator, with new names for its outputs.
  struct trial {
    progress done;
    std::vector<std::string> outputs;
    double flop = 0, bytes = 0;
  };

  void read_constants(const onnx::GraphProto& g);
  void set_shape(const std::string& name, const onnx_tensor& t);
  [[nodiscard]] std::vector<std::size_t> sorted(const std::vector<std::size_t>& nodes) const;
  /// Infers the shapes of nodes and inlines branches of If.
  void run(const std::vector<std::size_t>& nodes);
  void infer(std::size_t at);
  /// Computes a node's values if they follow from shapes and constants. Returns false otherwise.
  bool fold_values(std::size_t at);
  void mark_folded(std::size_t at);
  void find_conditions(const onnx::GraphProto& g, std::set<std::string>& names) const;
  void choose_branch(std::size_t at);
  [[nodiscard]] trial try_branch(const onnx::NodeProto& n, const onnx::GraphProto& branch);
  void accept(const onnx::NodeProto& n, trial chosen);
  void drop_what_is_not_run();

  std::string file_;
  onnx_options options_;
  onnx::ModelProto model_;
  onnx_lookup look_up_;
  onnx_inference inference_;
  std::map<std::string, std::string> other_versions_;  ///< of operators from functions, see expand_functions
  std::map<std::string, onnx_tensor> tensors_;
  std::map<std::string, long long> sizes_;     ///< of named axes, given or assumed
  std::map<std::string, onnx_tensor> stated_;  ///< shapes of intermediate tensors as stated in the file
  progress done_;
  std::set<std::string> names_;     ///< of all tensors, also of branches that do not run
  std::set<std::string> in_place_;  ///< of tensors in the graph and in branches under trial
  std::vector<char> folded_;
};

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_file.ipp>
#endif
