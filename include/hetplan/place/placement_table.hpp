// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One inference whose operators are to be placed: seconds of every operator on every device, of every edge between every two, memory.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan::place {

// Operators to be placed on like accelerators and like CPUs, and what a placement costs each device.

/// One operator; times are per sample.
struct placed_operator {
  std::string name = {};
  seconds accelerator_time = {};
  seconds cpu_time = {};
  bytes size = {};             ///< memory that it takes on an accelerator
  seconds transfer = {};       ///< of its output between an accelerator and the memory of the CPUs
  bool on_accelerator = true;  ///< whether an accelerator can run it
  bool backward = false;
  std::optional<long long> color = {};  ///< operators of one color are on one device

  friend bool operator==(const placed_operator&, const placed_operator&) = default;
};

/// What runs, and on how many devices. Samples follow each other in a pipeline: the busiest device sets the pace.
struct placement_workload {
  std::vector<placed_operator> operators = {};
  std::vector<std::pair<std::size_t, std::size_t>> edges = {};  ///< producer, reader
  int accelerators = 0;
  int cpus = 0;
  bytes accelerator_memory = bytes(std::numeric_limits<double>::infinity());

  friend bool operator==(const placement_workload&, const placement_workload&) = default;
};

/// Results have an entry per device.
inline constexpr int max_placement_devices = 65'536;

/// Throws  invalid_input: no operator, a time, size or memory that is negative or not finite (memory may be infinite), a number of
///         devices that is negative or above max_placement_devices, no device, an edge that leads nowhere, from a backward to a forward
///         operator, or closes a cycle.
void check_placement_workload(const placement_workload& w);

/// What each device has to do per sample: accelerators first, then CPUs.
///
/// An accelerator computes its operators, brings in every tensor that one of them reads and another device made, once however
/// many read it, and brings out every tensor that one of them made and another device reads, once however many devices read it.
/// A CPU computes: transfers are the accelerators'.
///
/// @param device  of each operator.
/// Complexity     O(operators + edges log edges).
/// Throws         invalid_input: not one device per operator, no such device.
/// Source         Tarnawski et al., NeurIPS 2020, computational model.
[[nodiscard]] std::vector<seconds> device_loads(const placement_workload& w, std::span<const std::size_t> device);

/// The first rule that a placement breaks, as a sentence: colors, what an accelerator can run, memory, and that the devices can be put
/// in an order in which forward edges never lead back. Nothing: it keeps all of them.
///
/// Throws  as device_loads.
[[nodiscard]] std::optional<std::string> find_broken_rule(const placement_workload& w, std::span<const std::size_t> device);

/// Data of one operator for another. Several edges of one operator carry the same tensor, or parts of it.
struct operator_edge {
  std::size_t from = 0;
  std::size_t to = 0;
  double bytes = 0;

  friend bool operator==(const operator_edge&, const operator_edge&) = default;
};

/// How an ordered pair of devices is joined: alone, a transfer takes latency_s + bytes * s_per_byte.
struct device_pair {
  double latency_s = 0;
  double s_per_byte = 0;                     ///< infinite: no route, nothing can be sent
  std::vector<std::size_t> resources = {};   ///< of the network, that it runs through; sorted, each once
  std::vector<double> busy_s_per_byte = {};  ///< of each resource: how long a byte keeps it busy; empty: not known, only bounds ask

  [[nodiscard]] bool joined() const { return s_per_byte < std::numeric_limits<double>::infinity(); }
  friend bool operator==(const device_pair&, const device_pair&) = default;
};

/// A tensor that several operators hold: once on every device that has one of them, beside what each holds alone.
struct tied_tensor {
  double bytes = 0;
  std::vector<std::size_t> operators = {};  ///< ascending

  friend bool operator==(const tied_tensor&, const tied_tensor&) = default;
};

/// What a placement table is made of. Matrices are row-major. Files, and users who measure, fill it; see also make_placement_table.
struct placement_data {
  std::vector<std::string> operators = {};  ///< names
  std::vector<std::string> devices = {};
  std::vector<operator_edge> edges = {};    ///< no cycle; none twice
  std::vector<double> time_s = {};          ///< operators x devices; infinite: cannot run there
  std::vector<double> held_bytes = {};      ///< by operator: weights, held all the time, but for those of `tied`
  std::vector<double> working_bytes = {};   ///< by operator: beside that, while it runs; empty: none
  std::vector<double> capacity_bytes = {};  ///< by device; may be infinite
  std::vector<device_pair> pairs = {};      ///< devices x devices, (from, to); the diagonal is not read
  std::vector<double> edge_time_s = {};     ///< edges x devices x devices: in place of pairs and bytes; empty: none are given
  std::size_t resources = 0;                ///< of the network: pairs name 0 ... resources - 1
  std::vector<tied_tensor> tied = {};       ///< tensors that several operators hold

  friend bool operator==(const placement_data&, const placement_data&) = default;
};

/// By operator: what it holds alone, and of each tied tensor an equal share. What a device holds is at least the sum over its operators,
/// and all operators together hold the sum on one device: what linear relaxations of memory count with.
///
/// Source  ours: with y = 1 where a device has any of n operators, the sum of their x is at most n y.
[[nodiscard]] std::vector<double> shared_out_bytes(const placement_data& d);

/// The problem of placing operators for the smallest makespan: which device runs which operator of one input, and when.
/// Operators of one device run one after another; a transfer between devices takes its time, none is needed on one device.
///
///     const placement_table t = make_placement_table(problem);     // of a model, a cluster and a cost model
///     t.time_s(op, device);  t.transfer_s(edge, from, to);
///
/// Throws      invalid_input (a size that does not fit, a number that is negative, above 1e100 or no number, an edge that leads nowhere,
/// twice the same edge, a cycle, no operator, no device, a tied tensor whose operators are not two or more in ascending order).
/// Complexity  O(operators log operators + edges log edges + the size of the matrices).
/// Source      Moirai, table II: p_ik, p_qk'k'', m_i, Mem_k.
class placement_table {
 public:
  explicit placement_table(placement_data given);

  [[nodiscard]] std::size_t size() const { return data_.operators.size(); }
  [[nodiscard]] std::size_t devices() const { return data_.devices.size(); }
  [[nodiscard]] std::size_t resources() const { return data_.resources; }
  [[nodiscard]] const placement_data& data() const { return data_; }
  [[nodiscard]] std::span<const operator_edge> edges() const { return data_.edges; }
  [[nodiscard]] const device_pair& pair(std::size_t from, std::size_t to) const { return data_.pairs[from * devices() + to]; }

  /// All operators, so that every edge goes forward; the smallest number first.
  [[nodiscard]] std::span<const std::size_t> order() const { return order_; }
  /// Indices of the edges that enter or leave an operator, ascending.
  [[nodiscard]] std::span<const std::uint32_t> in_edges(std::size_t op) const { return row(first_in_, in_, op); }
  [[nodiscard]] std::span<const std::uint32_t> out_edges(std::size_t op) const { return row(first_out_, out_, op); }

  /// Infinite where the device cannot run it.
  [[nodiscard]] double time_s(std::size_t op, std::size_t device) const { return data_.time_s[op * devices() + device]; }
  /// The least over all devices.
  [[nodiscard]] double fastest_s(std::size_t op) const { return fastest_s_[op]; }
  /// Of an edge's data between two devices that has them for itself: 0 on one device, infinite where no route is.
  [[nodiscard]] double transfer_s(std::size_t edge, std::size_t from, std::size_t to) const {
    if (from == to) return 0;
    if (!data_.edge_time_s.empty()) return data_.edge_time_s[(edge * devices() + from) * devices() + to];
    return pair(from, to).latency_s + (data_.edges[edge].bytes > 0 ? data_.edges[edge].bytes * pair(from, to).s_per_byte
                                       : pair(from, to).joined()   ? 0
                                                                   : std::numeric_limits<double>::infinity());
  }
  /// Of an operator's whole output: the longest of its edges. Complexity  O(1), or O(readers) where seconds of edges are given.
  [[nodiscard]] double output_s(std::size_t op, std::size_t from, std::size_t to) const;

  /// The edge of an operator's output with the most bytes, the first on a tie. It must have one.
  [[nodiscard]] std::size_t largest_out(std::size_t op) const { return largest_out_[op]; }

  /// Alone, without tied tensors.
  [[nodiscard]] double held_bytes(std::size_t op) const { return data_.held_bytes[op]; }
  [[nodiscard]] std::span<const tied_tensor> tied() const { return data_.tied; }
  /// Indices of the tied tensors that an operator holds, ascending.
  [[nodiscard]] std::span<const std::uint32_t> tied_of(std::size_t op) const {
    return data_.tied.empty() ? std::span<const std::uint32_t>() : row(first_tied_, tied_, op);
  }
  /// See the function shared_out_bytes.
  [[nodiscard]] double shared_out_bytes(std::size_t op) const { return shared_out_bytes_[op]; }
  [[nodiscard]] double working_bytes(std::size_t op) const { return data_.working_bytes.empty() ? 0 : data_.working_bytes[op]; }
  /// Of all operators on one device.
  [[nodiscard]] double all_held_bytes() const { return all_held_bytes_; }
  /// A part in 1e12 more than was given where bytes of operators are no whole numbers.
  [[nodiscard]] double capacity_bytes(std::size_t device) const { return capacity_bytes_[device]; }

  friend bool operator==(const placement_table& a, const placement_table& b) { return a.data_ == b.data_; }

 private:
  [[nodiscard]] static std::span<const std::uint32_t> row(const std::vector<std::size_t>& first, const std::vector<std::uint32_t>& all,
                                                          std::size_t op) {
    return std::span(all).subspan(first[op], first[op + 1] - first[op]);
  }
  void check() const;
  void index();

  placement_data data_;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> first_in_, first_out_;
  std::vector<std::uint32_t> in_, out_;
  std::vector<std::size_t> first_tied_;
  std::vector<std::uint32_t> tied_;
  std::vector<double> shared_out_bytes_;
  std::vector<std::uint32_t> largest_out_;  ///< by operator: its edge with the most bytes
  std::vector<double> fastest_s_;
  std::vector<double> capacity_bytes_;
  double all_held_bytes_ = 0;
};

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/placement_table.ipp>
#endif
