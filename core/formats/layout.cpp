#include "core/formats/layout.hpp"

#include "core/base/check.hpp"

namespace tandem {

std::shared_ptr<const Layout> aligned_to(const Layout& layout, std::int64_t alignment) {
  CHECK(alignment > 0 && alignment % kFieldAlignment == 0, alignment);
  Layout aligned;
  for (Field field : layout.fields) {
    field.offset = aligned.elements * size_of(DType::F32);
    aligned.elements += (field.padded_elements() + alignment - 1) / alignment * alignment;
    aligned.fields.push_back(std::move(field));
  }
  return std::make_shared<const Layout>(std::move(aligned));
}

}  // namespace tandem
