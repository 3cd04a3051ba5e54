// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What reading and cutting ONNX files share: a parsed model with shapes, in an order in which producers come first.

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

/// A file, checked as far as a planner needs, its functions and branches in place, its shapes inferred.
class onnx_file {
 public:
  /// Throws invalid_input: see read_onnx.
  onnx_file(std::string_view text, std::string file, const onnx_options& options);
  onnx_file(const onnx_file&) = delete;
  onnx_file& operator=(const onnx_file&) = delete;

  /// Without functions and operators If: what they stand for is in their place.
  [[nodiscard]] const onnx::ModelProto& model() const { return model_; }
  [[nodiscard]] const onnx::NodeProto& node(std::size_t i) const { return model_.graph().node(static_cast<int>(i)); }
  /// Nodes, producers first; the file's order where that is one.
  [[nodiscard]] const std::vector<std::size_t>& order() const { return done_.order; }
  [[nodiscard]] const onnx_tensor& tensor(const std::string& name) const;
  [[nodiscard]] const onnx_lookup& tensors() const { return look_up_; }
  [[nodiscard]] const std::vector<std::string>& assumed() const { return done_.assumed; }
  /// Does a node compute only constants or shapes?
  [[nodiscard]] bool is_folded(std::size_t node) const { return folded_[node]; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  /// What is known so far; a branch that is tried has one of its own.
  struct progress {
    std::vector<std::size_t> order;
    std::vector<std::string> assumed;
    std::vector<std::string> believed;  ///< tensors of which nothing else is known
    std::size_t without_shape = 0;      ///< operators whose shapes ONNX would not infer
    std::size_t branches = 0;           ///< operators If
    std::vector<std::string> asked;     ///< names for which a branch was asked, of operators If that count
  };
  /// A branch of If in place of it, its outputs under names of its own.
  struct trial {
    progress done;
    std::vector<std::string> outputs;
    double flop = 0, bytes = 0;
  };

  void read_constants(const onnx::GraphProto& g);
  void set_shape(const std::string& name, const onnx_tensor& t);
  [[nodiscard]] std::vector<std::size_t> sorted(const std::vector<std::size_t>& nodes) const;
  /// Infers nodes, and puts the branches of If where they are.
  void run(const std::vector<std::size_t>& nodes);
  void infer(std::size_t at);
  /// Computes a shape, or from shapes; false: it does not.
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
  std::map<std::string, std::string> other_versions_;  ///< see expand_functions
  std::map<std::string, onnx_tensor> tensors_;
  std::map<std::string, long long> sizes_;     ///< of axes by name, given or assumed
  std::map<std::string, onnx_tensor> stated_;  ///< what the file says of tensors in between
  progress done_;
  std::set<std::string> names_;     ///< of all tensors, those in branches that do not run included
  std::set<std::string> in_place_;  ///< of tensors in the graph, and in branches that have been tried
  std::vector<char> folded_;
};

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_file.ipp>
#endif
