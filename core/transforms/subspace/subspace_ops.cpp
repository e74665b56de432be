#include "core/transforms/subspace/subspace_ops.hpp"

#include <algorithm>
#include <initializer_list>

#include "core/formats/layout.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/meter.hpp"

namespace tandem {

bool compresses(const Field& field, std::int64_t rank) {
  return field.shape.size() == 2 && std::min(field.shape[0], field.shape[1]) > rank;
}

std::shared_ptr<const Layout> subspace_layout(const Layout& layout, std::int64_t rank) {
  LayoutBuilder builder;
  for (const Field& field : layout.fields)
    compresses(field, rank) ? builder.add(field.name, {rank, rank}) : builder.add(field.name, {field.elements()});
  return builder.build();
}

std::shared_ptr<const Layout> projector_layout(const Layout& layout, const SubspaceUpdate& subspace) {
  LayoutBuilder builder;
  for (const Field& field : layout.fields)
    if (compresses(field, subspace.rank))
      builder.add(field.name + ".left", {field.shape[0], subspace.nonzeros})
          .add(field.name + ".right", {field.shape[1], subspace.nonzeros});
  return builder.build();
}

namespace {

constexpr std::int64_t kScalarBytes = std::int64_t{16} * 512;  // a few numbers, in a GPU's granules
constexpr std::int64_t kIndexBytes = size_of(DType::I64), kFloatBytes = size_of(DType::F32);

// A matrix that is compressed, and the sizes of what its bodies hold in the network's precision.
struct Matrix {
  std::int64_t m, n, d, r;
  DType type;
  std::int64_t sized(std::int64_t rows, std::int64_t columns) const { return rows * columns * size_of(type); }
};

std::vector<Matrix> matrices_of(const Layout& layout, const SubspaceUpdate& subspace, DType type) {
  std::vector<Matrix> matrices;
  for (const Field& field : layout.fields)
    if (compresses(field, subspace.rank))
      matrices.push_back({field.shape[0], field.shape[1], subspace.rank, subspace.nonzeros, type});
  return matrices;
}

// What LibTorch takes beside what a body asks for: on a GPU cuBLAS's 32 MiB and rounding, on the CPU what oneDNN copies
// of a product's operands in 16 bits.
std::int64_t library_bytes(const Layout& layout, DType type, bool gpu) {
  std::int64_t largest = 0;
  for (const Field& field : layout.fields) largest = std::max(largest, field.elements());
  if (gpu) return std::int64_t{33} << 20;
  return type == DType::F32 ? 0 : (256 << 10) + largest * kFloatBytes;
}

// Makes the dense form of one side of a projector.
void expand(WorkspaceMeter& meter, const Matrix& a, std::int64_t rows) {
  const std::int64_t index = meter.take(rows * a.r * kIndexBytes);
  meter.take(a.sized(rows, a.d));
  if (a.type != DType::F32) meter.touch(a.sized(rows, a.r));
  meter.drop(index);
}

// Indices widened; zeros; values rounded; values set.
void add_expansion(std::vector<Kernel>& kernels, const Matrix& a, std::int64_t rows) {
  const std::int64_t values = rows * a.r;
  kernels.push_back(memory_kernel(values * (size_of(DType::I16) + kIndexBytes)));
  kernels.push_back(memory_kernel(a.sized(rows, a.d)));
  kernels.push_back(memory_kernel(values * (kIndexBytes + kFloatBytes) + a.sized(rows, a.r)));
}

void add_elementwise(std::vector<Kernel>& kernels, std::int64_t elements,
                     std::initializer_list<std::int64_t> bytes_an_element) {
  for (const std::int64_t bytes : bytes_an_element) kernels.push_back(memory_kernel(elements * bytes));
}

}  // namespace

SubspaceOp compress_op(const Layout& layout, const SubspaceUpdate& subspace, DType type, bool gpu) {
  SubspaceOp op;
  for (const Field& field : layout.fields)
    if (!compresses(field, subspace.rank)) add_elementwise(op.kernels, field.elements(), {size_of(type) + kFloatBytes});
  for (const Matrix& a : matrices_of(layout, subspace, type)) {
    const std::int64_t inner = std::min(a.m, a.n), outer = std::max(a.m, a.n);
    add_expansion(op.kernels, a, a.m);
    add_expansion(op.kernels, a, a.n);
    op.kernels.push_back(gemm(inner, a.d, outer, type));
    op.kernels.push_back(gemm(a.d, a.d, inner, type));
    add_elementwise(op.kernels, a.d * a.d, {size_of(type) + kFloatBytes});
    WorkspaceMeter meter;
    expand(meter, a, a.m);
    expand(meter, a, a.n);
    meter.touch_all({a.sized(inner, a.d), a.sized(a.d, a.d)});
    op.workspace_bytes = std::max(op.workspace_bytes, meter.peak());
  }
  if (op.workspace_bytes > 0) op.workspace_bytes += library_bytes(layout, type, gpu);
  return op;
}

SubspaceOp apply_op(const Layout& layout, const SubspaceUpdate& subspace, DType type, bool gpu) {
  const bool narrow = type != DType::F32;
  SubspaceOp op;
  // A whole bucket's masters are made at once, and its parameters from them.
  if (narrow && subspace.masters)
    add_elementwise(op.kernels, layout.elements, {6, 8, 10, 8, 8, 6, 8, 12, 6});
  else if (narrow)
    add_elementwise(op.kernels, layout.elements, {6, 6});
  std::int64_t widest = 0;
  for (const Field& field : layout.fields)
    if (!compresses(field, subspace.rank)) add_elementwise(op.kernels, field.elements(), {3 * kFloatBytes});
  for (const Matrix& a : matrices_of(layout, subspace, type)) {
    add_expansion(op.kernels, a, a.m);
    add_expansion(op.kernels, a, a.n);
    op.kernels.push_back(gemm(a.m, a.d, a.d, type));
    op.kernels.push_back(gemm(a.m, a.n, a.d, type));
    add_elementwise(op.kernels, a.m * a.n, {size_of(type) + 2 * kFloatBytes});
    WorkspaceMeter meter;
    expand(meter, a, a.m);
    expand(meter, a, a.n);
    meter.touch_all({narrow ? a.sized(a.d, a.d) : 0, a.sized(a.m, a.d), a.sized(a.m, a.n)});
    widest = std::max(widest, meter.peak());
  }
  const std::int64_t masters = narrow ? layout.elements * kFloatBytes : 0;
  op.workspace_bytes = masters + std::max(widest, subspace.masters ? masters : 0) + kScalarBytes;
  if (widest > 0) op.workspace_bytes += library_bytes(layout, type, gpu);
  return op;
}

namespace {

void add_products(std::vector<Kernel>& kernels, const Matrix& a) {
  add_expansion(kernels, a, a.m);
  add_expansion(kernels, a, a.n);
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    kernels.push_back(gemm(m, n, k, a.type));
  };
  product(a.m, a.d, a.n), product(a.n, a.d, a.m);                          // G Q, G^T P
  product(a.d, a.d, a.m), product(a.d, a.d, a.m), product(a.d, a.d, a.n);  // S, P^T P, Q^T Q
  product(a.d, a.d, a.d), product(a.d, a.d, a.d);                          // P^T P S Q^T Q
}

void add_fit_step(std::vector<Kernel>& kernels, const Matrix& a) {
  add_products(kernels, a);
  for (int i = 0; i < 3; ++i) kernels.push_back(gemm(a.d, a.d, a.d, a.type));
  for (const std::int64_t rows : {a.m, a.n}) {
    for (int i = 0; i < 2; ++i) kernels.push_back(gemm(rows, a.d, a.d, a.type));
    // Of the values: gathered, widened, scaled; AdamW, an operator a kernel.
    add_elementwise(kernels, rows * a.r, {12, 6, 8, 12, 8, 16, 8, 8, 8, 8, 16});
  }
}

std::int64_t fit_bytes(const Matrix& a) {
  WorkspaceMeter meter;
  for (const std::int64_t rows : {a.m, a.n}) {
    meter.take(rows * a.r * kIndexBytes);
    for (int i = 0; i < 3; ++i) meter.take(rows * a.r * kFloatBytes);  // old values, Adam's moments
    for (int i = 0; i < 3; ++i) meter.take(a.sized(rows, a.d));        // dense form, product, gradient
  }
  for (int i = 0; i < 6; ++i) meter.take(a.sized(a.d, a.d));
  const std::int64_t most_values = std::max(a.m, a.n) * a.r;
  meter.touch_all({most_values * kFloatBytes, most_values * kFloatBytes, most_values * kFloatBytes});
  for (int i = 0; i < 2; ++i) meter.take(a.sized(a.d, a.d));  // into the new subspace
  for (int i = 0; i < 7; ++i) meter.take(a.d * a.d * kFloatBytes);
  return meter.peak() + kScalarBytes;
}

}  // namespace

SubspaceOp fit_op(const Layout& layout, const SubspaceUpdate& subspace, DType type, bool gpu) {
  SubspaceOp op;
  for (const Matrix& a : matrices_of(layout, subspace, type)) {
    op.kernels.push_back(row_kernel(0, a.sized(a.m, a.n)));  // |G|
    for (int i = 0; i < kFitSteps; ++i) add_fit_step(op.kernels, a);
    add_products(op.kernels, a);
    for (const std::int64_t rows : {a.m, a.n}) {
      add_expansion(op.kernels, a, rows);
      op.kernels.push_back(gemm(a.d, a.d, rows, type));
    }
    for (int i = 0; i < 4; ++i) op.kernels.push_back(gemm(a.d, a.d, a.d, DType::F32));
    op.workspace_bytes = std::max(op.workspace_bytes, fit_bytes(a));
  }
  op.workspace_bytes += library_bytes(layout, type, gpu);
  return op;
}

}  // namespace tandem
