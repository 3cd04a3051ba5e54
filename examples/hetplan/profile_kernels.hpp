// SPDX-License-Identifier: BSL-1.0
#pragma once
// Kernels that tell what the processors of this machine can do: matrix products and moved bytes, on several threads.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include <hetplan/graph/planning_graph.hpp>

namespace cli {

/// Sizes of a product C = A B in single precision: A is rows x inner, B inner x columns.
struct product_size {
  long rows = 0, inner = 0, columns = 0;

  [[nodiscard]] double flops() const { return 2 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns); }
  [[nodiscard]] double bytes() const {
    const double r = static_cast<double>(rows), k = static_cast<double>(inner), c = static_cast<double>(columns);
    return 4 * (r * k + k * c + r * c);
  }
  friend auto operator<=>(const product_size&, const product_size&) = default;
};

/// What a layer is to the kernels, for a batch.
struct layer_kernels {
  product_size forward;        ///< of its weights
  product_size attention;      ///< of pairs of tokens
  double moved = 0;            ///< bytes besides those of the products
  double input_share = 1;      ///< FLOP of the input gradients in those of the forward
  double weight_share = 1;     ///< likewise of the weight gradients
  double attention_share = 1;  ///< of attention in its backward
};

/// Returns the product with the layer's FLOP, rows and weights: inner is what its in-edges carry for each row, else as much as columns;
/// rows are more than the layer tells where its FLOP need more than its weights. Attention is one product of tokens by tokens; moved bytes
/// are the traffic that the products do not have.
[[nodiscard]] layer_kernels kernels_of(const hetplan::planning_graph& g, const hetplan::layer& l, int batch);

/// Threads that measure. Times are medians of runs; before each run the caches are filled with other data, as between layers of a model.
class kernel_team {
 public:
  /// @param threads  >= 1.
  explicit kernel_team(int threads);
  ~kernel_team();
  kernel_team(const kernel_team&) = delete;
  kernel_team& operator=(const kernel_team&) = delete;

  /// Returns the median seconds of a product; the same size is measured once.
  [[nodiscard]] double product_s(const product_size& p);
  /// Returns the median seconds to read and write so many bytes together.
  [[nodiscard]] double move_s(double bytes);

  /// Returns the rate of the fastest product so far, a large one among them: what disturbs the large one may leave others alone.
  [[nodiscard]] double flops_per_second();
  [[nodiscard]] double bytes_per_second();

 private:
  class threads;
  [[nodiscard]] double median_s(const std::function<void()>& work);
  void evict();

  std::unique_ptr<threads> team_;
  std::unique_ptr<float[]> others_;  ///< fills the caches
  std::size_t others_count_ = 0;
  std::map<product_size, double> products_;
  std::map<long, double> moves_;
};

}  // namespace cli
