// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What reading and cutting ONNX files share: a parsed model with shapes, in an order in which producers come first.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/exchange/onnx_inference.hpp>
#include <hetplan/exchange/onnx_values.hpp>

namespace HETPLAN_NAMESPACE::exchange::detail {

/// A file, checked as far as a planner needs, its shapes inferred.
class onnx_file {
 public:
  /// Throws invalid_input: see read_onnx.
  onnx_file(std::string_view text, std::string file, const std::map<std::string, long long>& dimensions);
  onnx_file(const onnx_file&) = delete;
  onnx_file& operator=(const onnx_file&) = delete;

  [[nodiscard]] const onnx::ModelProto& model() const { return model_; }
  [[nodiscard]] const onnx::NodeProto& node(std::size_t i) const { return model_.graph().node(static_cast<int>(i)); }
  /// Nodes, producers first; the file's order where that is one.
  [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }
  [[nodiscard]] const onnx_tensor& tensor(const std::string& name) const;
  [[nodiscard]] const onnx_lookup& tensors() const { return look_up_; }
  [[nodiscard]] const std::vector<std::string>& assumed() const { return assumed_; }
  /// Does a node compute only constants or shapes?
  [[nodiscard]] bool is_folded(std::size_t node) const { return folded_[node]; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  [[nodiscard]] static std::string label(const onnx::NodeProto& n);
  void check_names() const;
  void check_versions();
  void check_nodes() const;
  void size_inputs(const std::map<std::string, long long>& dimensions);
  void sort_nodes();
  void read_constants();
  void set_shape(const std::string& name, const onnx_tensor& t);
  void infer(std::size_t at);
  /// Computes a shape, or from shapes; false: it does not.
  bool fold_values(std::size_t at);
  void mark_folded();

  std::string file_;
  onnx::ModelProto model_;
  onnx_lookup look_up_;
  onnx_inference inference_;
  std::vector<std::size_t> order_;
  std::map<std::string, onnx_tensor> tensors_;
  std::map<std::string, long long> sizes_;                     ///< of axes by name, given or assumed
  std::map<std::string, const onnx::ValueInfoProto*> stated_;  ///< what the file says of tensors in between
  std::vector<std::string> believed_;                          ///< tensors of which nothing else is known
  std::vector<std::string> assumed_;
  std::size_t without_shape_ = 0;  ///< operators whose shapes ONNX would not infer
  std::vector<char> folded_;
};

}  // namespace HETPLAN_NAMESPACE::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_file.ipp>
#endif
