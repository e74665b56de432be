#include "runtime/primitives/common/page_codes.hpp"

#include "runtime/bodies/common/block_tiles.hpp"
#include "runtime/bodies/common/device_kernels.hpp"

#undef CHECK  // LibTorch's logging defines one, too
#include "core/base/check.hpp"

namespace tandem {
namespace {

std::int64_t blocks_of(const at::Tensor& numbers, std::int64_t bits, const at::Tensor& codes) {
  const StateBlock block = weight_block(bits);
  CHECK(numbers.is_contiguous() && codes.is_contiguous(), "codes of rows with gaps");
  CHECK(numbers.numel() % block.elements == 0, numbers.numel(), block.elements);
  const std::int64_t blocks = numbers.numel() / block.elements;
  CHECK(codes.numel() == blocks * block.bytes, codes.numel(), blocks);
  return blocks;
}

}  // namespace

void encode_page(const at::Tensor& numbers, std::int64_t bits, const at::Tensor& codes) {
  const std::int64_t blocks = blocks_of(numbers, bits, codes);
  const auto* from = numbers.const_data_ptr<float>();
  auto* to = static_cast<std::byte*>(codes.mutable_data_ptr());
  if (codes.is_cuda()) return device_kernels().encode_weights(from, bits, blocks, to);
  const StateBlock block = weight_block(bits);
  share_blocks(blocks, [&](std::int64_t first, std::int64_t count) {
    encode_weights(from + first * block.elements, bits, count, to + first * block.bytes);
  });
}

void decode_page(const at::Tensor& codes, std::int64_t bits, DType type, const at::Tensor& numbers) {
  const WeightSpan span{static_cast<const std::byte*>(codes.const_data_ptr()), numbers.mutable_data_ptr(), type, bits,
                        blocks_of(numbers, bits, codes)};
  if (codes.is_cuda()) return device_kernels().decode_weights(span);
  share_blocks(span.blocks,
               [&](std::int64_t first, std::int64_t count) { decode_weights(part_of(span, first, count)); });
}

}  // namespace tandem
