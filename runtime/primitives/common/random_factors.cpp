#include "runtime/primitives/common/random_factors.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem {
namespace {

// SplitMix64 (Steele, Lea and Flood 2014): the n-th number of a stream is the mix of key + n kStep.
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15, kFirst = 0xbf58476d1ce4e5b9, kSecond = 0x94d049bb133111eb;
constexpr std::int64_t kPart = 1 << 20;

constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * kFirst;
  z = (z ^ (z >> 27)) * kSecond;
  return z ^ (z >> 31);
}

// Upper halves of numbers below it are dropped.
std::uint32_t limit_of(double rate) { return static_cast<std::uint32_t>(std::lround(std::ldexp(rate, 32))); }

template <typename Number>
void fill(Number* to, std::int64_t count, std::uint64_t key, double rate) {
  const std::uint32_t limit = limit_of(rate);
  const Number kept = static_cast<Number>(static_cast<float>(1 / (1 - rate))), dropped = static_cast<Number>(0.0f);
  at::parallel_for(0, count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      to[i] = mixed(key + static_cast<std::uint64_t>(i) * kStep) >> 32 < limit ? dropped : kept;
  });
}

std::int64_t as_signed(std::uint64_t number) { return static_cast<std::int64_t>(number); }

// z ^= z >> bits, without its sign.
void fold(at::Tensor& z, int bits) {
  at::Tensor shifted = z.__rshift__(bits);
  z.bitwise_xor_(shifted.bitwise_and_(as_signed(~std::uint64_t{0} >> bits)));
}

// `made`: what a part of `to` becomes, of 64 bits each.
template <typename Make>
void fill_by_kernels(const at::Tensor& to, std::uint64_t key, const Make& made) {
  const at::Tensor all = to.view({-1});
  for (std::int64_t begin = 0; begin < all.numel(); begin += kPart) {
    const std::int64_t end = std::min(begin + kPart, all.numel());
    at::Tensor z = at::arange(begin, end, all.options().dtype(at::kLong));
    z.mul_(as_signed(kStep)).add_(as_signed(key));
    fold(z, 30);
    z.mul_(as_signed(kFirst));
    fold(z, 27);
    z.mul_(as_signed(kSecond));
    fold(z, 31);
    all.slice(0, begin, end).copy_(made(std::move(z)));
  }
}

constexpr float kUniformStep = 0x1p-24F;

}  // namespace

std::uint64_t stream_key(const RandomKey& random, std::int64_t stream) {
  std::uint64_t key = mixed(random.seed + kStep);
  for (const std::int64_t part : {random.step, random.module, random.micro_batch, random.rank, stream})
    key = mixed(key + (static_cast<std::uint64_t>(part) + 1) * kStep);
  return key;
}

void fill_random_factors(const at::Tensor& factors, std::uint64_t key, double rate) {
  if (!factors.is_cpu()) return fill_random_factors_by_kernels(factors, key, rate);
  const std::int64_t count = factors.numel();
  if (factors.scalar_type() == at::kFloat) return fill(factors.mutable_data_ptr<float>(), count, key, rate);
  if (factors.scalar_type() == at::kHalf) return fill(factors.mutable_data_ptr<at::Half>(), count, key, rate);
  fill(factors.mutable_data_ptr<at::BFloat16>(), count, key, rate);
}

void fill_random_factors_by_kernels(const at::Tensor& factors, std::uint64_t key, double rate) {
  const float kept = static_cast<float>(1 / (1 - rate));
  fill_by_kernels(factors, key, [&](at::Tensor z) {
    z.bitwise_right_shift_(32).bitwise_and_(std::int64_t{0xffffffff});
    return z.ge(static_cast<std::int64_t>(limit_of(rate))).to(at::kFloat).mul_(kept);
  });
}

void fill_uniform(const at::Tensor& numbers, std::uint64_t key) {
  if (!numbers.is_cpu()) return fill_uniform_by_kernels(numbers, key);
  auto* const to = numbers.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < numbers.numel(); ++i)
    to[i] = (static_cast<float>(mixed(key + static_cast<std::uint64_t>(i) * kStep) >> 40) + 0.5F) * kUniformStep;
}

void fill_uniform_by_kernels(const at::Tensor& numbers, std::uint64_t key) {
  fill_by_kernels(numbers, key, [](at::Tensor z) {
    z.bitwise_right_shift_(40).bitwise_and_(std::int64_t{0xffffff});
    return z.to(at::kFloat).add_(0.5).mul_(kUniformStep);
  });
}

}  // namespace tandem
