// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placement problems: a workload for identical accelerators and CPUs, and the table of one inference (times, transfers, memory).

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

/// Operator of a placement workload; times are per sample.
struct placed_operator {
  std::string name = {};
  seconds accelerator_time = {};
  seconds cpu_time = {};
  bytes size = {};             ///< memory on an accelerator
  seconds transfer = {};       ///< time of the output between an accelerator and the memory of the CPUs
  bool on_accelerator = true;  ///< true if an accelerator can run it
  bool backward = false;
  std::optional<long long> color = {};  ///< operators of one color share a device

  friend bool operator==(const placed_operator&, const placed_operator&) = default;
};

/// Operators and numbers of devices. Samples are pipelined, so the busiest device sets the throughput.
struct placement_workload {
  std::vector<placed_operator> operators = {};
  std::vector<std::pair<std::size_t, std::size_t>> edges = {};  ///< producer, reader
  int accelerators = 0;
  int cpus = 0;
  bytes accelerator_memory = bytes(std::numeric_limits<double>::infinity());

  friend bool operator==(const placement_workload&, const placement_workload&) = default;
};

/// Most devices of a workload, since results have one entry per device.
inline constexpr int max_placement_devices = 65'536;

/// Throws  invalid_input: no operator; a time, size or memory that is negative or not finite (memory may be infinite); a number of
///         devices that is negative or above max_placement_devices; no device; an edge to a missing operator, from a backward to a
///         forward operator, or on a cycle.
void check_placement_workload(const placement_workload& w);

/// Returns the load of each device per sample: accelerators first, then CPUs. An accelerator computes its operators. It loads every
/// tensor that one of them reads and another device made, once for all readers, and stores every tensor that one of them made and another
/// device reads, once for all devices. A CPU only computes, since transfers are charged to the accelerators.
///
/// @param device  of each operator.
/// Complexity     O(operators + edges log edges).
/// Throws         invalid_input: not one device per operator, or an unknown device.
/// Source         Tarnawski et al., NeurIPS 2020, computational model.
[[nodiscard]] std::vector<seconds> device_loads(const placement_workload& w, std::span<const std::size_t> device);

/// Returns the first rule that a placement breaks, as a sentence, or nothing. The rules are colors, operators that accelerators can run,
/// memory, and an order of the devices in which forward edges never lead back.
/// Throws  as device_loads.
[[nodiscard]] std::optional<std::string> find_broken_rule(const placement_workload& w, std::span<const std::size_t> device);

/// Data dependency between two operators. The out-edges of an operator carry the same tensor or parts of it.
struct operator_edge {
  std::size_t from = 0;
  std::size_t to = 0;
  double bytes = 0;

  friend bool operator==(const operator_edge&, const operator_edge&) = default;
};

/// Connection of an ordered pair of devices. An uncontended transfer takes latency_s + bytes * s_per_byte.
struct device_pair {
  double latency_s = 0;
  double s_per_byte = 0;                     ///< infinite if there is no route
  std::vector<std::size_t> resources = {};   ///< network resources on the route; sorted, each once
  std::vector<double> busy_s_per_byte = {};  ///< by resource, how long a byte keeps it busy; empty if unknown; read by bounds alone

  [[nodiscard]] bool joined() const { return s_per_byte < std::numeric_limits<double>::infinity(); }
  friend bool operator==(const device_pair&, const device_pair&) = default;
};

/// Tensor that several operators hold, stored once on every device with one of them, beside each operator's own bytes.
struct tied_tensor {
  double bytes = 0;
  std::vector<std::size_t> operators = {};  ///< ascending

  friend bool operator==(const tied_tensor&, const tied_tensor&) = default;
};

/// Contents of a placement table; matrices are row-major. Filled from files, measurements or make_placement_table.
struct placement_data {
  std::vector<std::string> operators = {};  ///< names
  std::vector<std::string> devices = {};
  std::vector<operator_edge> edges = {};    ///< acyclic, without duplicates
  std::vector<double> time_s = {};          ///< operators x devices; infinite if the device cannot run the operator
  std::vector<double> held_bytes = {};      ///< by operator: weights held all the time, without tied tensors
  std::vector<double> working_bytes = {};   ///< by operator: further bytes while it runs; empty: none
  std::vector<double> capacity_bytes = {};  ///< by device; may be infinite
  std::vector<device_pair> pairs = {};      ///< devices x devices, (from, to); the diagonal is not read
  std::vector<double> edge_time_s = {};     ///< edges x devices x devices; replaces pairs and bytes; empty: not given
  std::size_t resources = 0;                ///< number of network resources, which pairs name 0 ... resources - 1
  std::vector<tied_tensor> tied = {};

  friend bool operator==(const placement_data&, const placement_data&) = default;
};

/// Returns, by operator, its own bytes plus an equal share of each tied tensor. A device holds at least the sum over its operators, and
/// exactly the sum if it has all of them. Linear relaxations of memory use these bytes.
/// Source  ours: with y = 1 where a device has any of n operators, the sum of their x is at most n y.
[[nodiscard]] std::vector<double> shared_out_bytes(const placement_data& d);

/// Problem of placing operators for the smallest makespan: which device runs which operator of one input, and when. A device runs one
/// operator at a time. A transfer takes time between devices, but none within a device.
///
///     const placement_table t = make_placement_table(problem);     // of a model, a cluster and a cost model
///     t.time_s(op, device);  t.transfer_s(edge, from, to);
///
/// Throws      invalid_input (a matrix of the wrong size; a number that is negative, above 1e100 or NaN; an edge to a missing operator,
///             a duplicate edge or a cycle; no operator or no device; a tied tensor without two or more operators in ascending order).
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

  /// Returns all operators in topological order, the smallest number first.
  [[nodiscard]] std::span<const std::size_t> order() const { return order_; }
  /// Returns the indices of the edges that enter or leave an operator, ascending.
  [[nodiscard]] std::span<const std::uint32_t> in_edges(std::size_t op) const { return row(first_in_, in_, op); }
  [[nodiscard]] std::span<const std::uint32_t> out_edges(std::size_t op) const { return row(first_out_, out_, op); }

  /// Returns the time of an operator on a device; infinite if the device cannot run it.
  [[nodiscard]] double time_s(std::size_t op, std::size_t device) const { return data_.time_s[op * devices() + device]; }
  /// Returns the least time of an operator over all devices.
  [[nodiscard]] double fastest_s(std::size_t op) const { return fastest_s_[op]; }
  /// Returns the uncontended time of an edge's transfer: 0 on one device, infinite without a route.
  [[nodiscard]] double transfer_s(std::size_t edge, std::size_t from, std::size_t to) const {
    if (from == to) return 0;
    if (!data_.edge_time_s.empty()) return data_.edge_time_s[(edge * devices() + from) * devices() + to];
    return pair(from, to).latency_s + (data_.edges[edge].bytes > 0 ? data_.edges[edge].bytes * pair(from, to).s_per_byte
                                       : pair(from, to).joined()   ? 0
                                                                   : std::numeric_limits<double>::infinity());
  }
  /// Returns the time of an operator's whole output, the longest of its edges. Complexity  O(1), or O(readers) with edge_time_s.
  [[nodiscard]] double output_s(std::size_t op, std::size_t from, std::size_t to) const;

  /// Returns the out-edge of an operator with the most bytes, the first on a tie. The operator must have an out-edge.
  [[nodiscard]] std::size_t largest_out(std::size_t op) const { return largest_out_[op]; }

  /// Returns the own bytes of an operator, without tied tensors.
  [[nodiscard]] double held_bytes(std::size_t op) const { return data_.held_bytes[op]; }
  [[nodiscard]] std::span<const tied_tensor> tied() const { return data_.tied; }
  /// Returns the indices of the tied tensors that an operator holds, ascending.
  [[nodiscard]] std::span<const std::uint32_t> tied_of(std::size_t op) const {
    return data_.tied.empty() ? std::span<const std::uint32_t>() : row(first_tied_, tied_, op);
  }
  /// Returns an operator's entry of the function shared_out_bytes.
  [[nodiscard]] double shared_out_bytes(std::size_t op) const { return shared_out_bytes_[op]; }
  [[nodiscard]] double working_bytes(std::size_t op) const { return data_.working_bytes.empty() ? 0 : data_.working_bytes[op]; }
  /// Returns the bytes that all operators hold on one device.
  [[nodiscard]] double all_held_bytes() const { return all_held_bytes_; }
  /// Returns the capacity of a device, larger by a part in 1e12 if bytes of operators are not whole numbers.
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
  std::vector<std::uint32_t> largest_out_;
  std::vector<double> fastest_s_;
  std::vector<double> capacity_bytes_;
  double all_held_bytes_ = 0;
};

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/placement_table.ipp>
#endif
