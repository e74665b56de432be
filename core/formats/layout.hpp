// Builds the inside of a flat bucket. Must not know what the fields mean.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/graph/graph.hpp"

namespace tandem {

// Field::offset counts bytes of a bucket of four-byte elements; buckets of other types scale it (field_offset). Fields
// start at multiples of 32 elements: 64 bytes of a two-byte type.
inline constexpr std::int64_t kFieldAlignment = 32;

class LayoutBuilder {
 public:
  LayoutBuilder& add(std::string name, std::initializer_list<std::int64_t> shape) {
    return add(std::move(name), decltype(Field::shape)(shape));
  }
  LayoutBuilder& add(std::string name, decltype(Field::shape) shape, const Initial& initial = {},
                     std::int64_t padding_rows = 0) {
    Field field;
    field.initial = initial;
    field.padding_rows = padding_rows;
    field.name = std::move(name);
    field.shape = std::move(shape);
    field.offset = layout_.elements * size_of(DType::F32);
    const std::int64_t padded = (field.padded_elements() + kFieldAlignment - 1) / kFieldAlignment * kFieldAlignment;
    layout_.elements += padded;
    layout_.fields.push_back(std::move(field));
    return *this;
  }
  // weight [outputs, inputs] and bias [outputs], as torch.nn.Linear.
  LayoutBuilder& add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    return add(name + ".weight", {outputs, inputs}).add(name + ".bias", {outputs});
  }
  LayoutBuilder& add_norm(const std::string& name, std::int64_t size) {
    return add(name + ".weight", {size}).add(name + ".bias", {size});
  }
  std::shared_ptr<const Layout> build() const { return std::make_shared<const Layout>(layout_); }

 private:
  Layout layout_;
};

// The same fields, beginning at multiples of `alignment` elements, which is one of kFieldAlignment.
std::shared_ptr<const Layout> aligned_to(const Layout& layout, std::int64_t alignment);

// The elements of a field that a tensor holds, which may be a part of a bucket: the first's place in the tensor, their
// count, and how many of the field come before.
struct HeldElements {
  std::int64_t first = 0, count = 0, before = 0;
};
inline HeldElements held_elements(const Field& field, const Tensor& tensor) {
  const std::int64_t begin = field.offset / size_of(DType::F32), held = tensor.bytes / size_of(tensor.type);
  const std::int64_t first = std::max(begin, tensor.first_element);
  const std::int64_t end = std::min(begin + field.elements(), tensor.first_element + held);
  return {first - tensor.first_element, std::max<std::int64_t>(end - first, 0), first - begin};
}

// Offset of a field in bytes in a bucket of `type`.
inline std::int64_t field_offset(const Field& field, DType type) {
  return field.offset / size_of(DType::F32) * size_of(type);
}

}  // namespace tandem
