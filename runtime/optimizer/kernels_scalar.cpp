// One element at a time, in portable C++: what the vectors must equal.
#include "runtime/optimizer/attended_rows_loop.hpp"
#include "runtime/optimizer/kernels.hpp"
#include "runtime/optimizer/one_bit_loop.hpp"
#include "runtime/optimizer/quantised_loop.hpp"
#include "runtime/optimizer/square_sum.hpp"

namespace tandem {
namespace {

struct ScalarOps {
  using Number = float;
  using Packed = std::uint16_t;
  static constexpr int kElements = 1;

  template <class T>
  static float load(const T* at) {
    T value;
    std::memcpy(&value, at, sizeof(T));  // at any address
    return to_float(value);
  }
  template <class T, class U>
  static void store(T* at, U value) {
    static_assert(sizeof(T) == sizeof(U));
    std::memcpy(at, &value, sizeof(T));
  }
  template <class T>
  static void stream(T* at, Packed value) {
    store(at, value);
  }
  template <class T>
  static Packed encode(float x) {
    static_assert(std::is_same_v<T, Float16>);
    return to_float16(x).bits;
  }
  static float join(const BFloat16* parameter, const std::int16_t* low) {
    SplitMaster halves;
    std::memcpy(&halves.parameter, parameter, sizeof(halves.parameter));
    std::memcpy(&halves.low, low, sizeof(halves.low));
    return join_master(halves);
  }
  struct Halves {
    Packed parameter;
    std::int16_t low;
  };
  static Halves split(float x) {
    const SplitMaster halves = split_master(x);
    return {halves.parameter.bits, halves.low};
  }
  static void fence() {}

  struct Sums {
    double lanes[kSums];
  };
  template <class T>
  static void add_squares(Sums& sums, const T* at) {
    for (int i = 0; i < kSums; ++i) {
      const double x = load(at + i);
      sums.lanes[i] += x * x;
    }
  }
  static void store(double* at, const Sums& sums) { std::memcpy(at, sums.lanes, sizeof(sums.lanes)); }
};

}  // namespace

const Kernels kScalarKernels{&update_of_any_states<ScalarOps>, &square_sum_kernel<ScalarOps>, &adam_by_signs<ScalarOps>,
                             &score_rows_of<ScalarOps>, &add_rows_of<ScalarOps>};

}  // namespace tandem
