#include "analysis/access_pattern.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/model/imported/module.hpp"
#include "core/model/imported/shapes.hpp"

namespace tandem {
namespace {

bool is_product(const std::vector<Kernel>& kernels) {
  return std::any_of(kernels.begin(), kernels.end(), [](const Kernel& kernel) {
    return kernel.kind == KernelKind::Gemm || kernel.kind == KernelKind::Attention;
  });
}

bool has_one_of(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// Convolutions are products over windows.
Access access_of(std::string_view name, bool reads_integers, const std::vector<Kernel>& kernels) {
  if (has_one_of(name, {"conv", "pool", "upsample"})) return Access::Windows;
  if (is_product(kernels)) return Access::Products;
  return reads_integers ? Access::Gather : Access::Stream;
}

void add(AccessBytes& to, Access access, const std::vector<Kernel>& kernels) {
  for (const Kernel& kernel : kernels) to.bytes[static_cast<std::size_t>(access)] += kernel.bytes;
}

// A loss reads integers, too, but one a row: it goes over all of its logits.
void add_call(const Call& call, AccessBytes& to) {
  std::vector<Kernel> kernels;
  call.what->primitive.kernels(call.how, call.shapes, Direction::Forward, {}, kernels);
  const bool reads_integers = std::any_of(call.shapes.in.begin(), call.shapes.in.end(),
                                          [](const Shape& shape) { return shape.type == DType::I64; });
  add(to, access_of(call.what->name, reads_integers && !call.what->primitive.is_loss(), kernels), kernels);
}

void add_call(const ImportedCall& call, const ImportedProgram& program, AccessBytes& to) {
  if (call.what->kind == Operator::Kind::View) return;
  const CallView view(call.arguments, program.values);
  TensorTypes out;
  for (const std::int32_t value : call.out) out.push_back(program.type(value));
  std::vector<Kernel> kernels;
  if (call.what->kernels != nullptr)
    call.what->kernels(view, out, kernels);
  else
    kernels.push_back({.kind = KernelKind::Memory, .bytes = read_bytes(view) + bytes_of(out)});
  const bool gathers = has_one_of(call.what->name, {"embedding", "index", "gather", "scatter"});
  add(to, access_of(call.what->name, gathers, kernels), kernels);
}

}  // namespace

Access AccessBytes::most() const {
  const auto most = std::max_element(bytes.begin(), bytes.end());
  return *most == 0 ? Access::Stream : static_cast<Access>(most - bytes.begin());
}

std::string AccessBytes::words() const {
  constexpr int kShare = 4;  // a quarter of all bytes
  const std::int64_t all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  const Access first = most();
  AccessBytes others = *this;
  others.bytes[static_cast<std::size_t>(first)] = 0;
  const Access second = others.most();
  const std::int64_t moved = others.bytes[static_cast<std::size_t>(second)];
  const std::string words(name_of(first));
  return moved > 0 && moved >= all / kShare ? words + "+" + std::string(name_of(second)) : words;
}

AccessBytes access_of(const Module& module) {
  AccessBytes sum;
  for (const Call& call : module.program) add_call(call, sum);
  if (const ImportedProgram* program = module.opaque == nullptr ? nullptr : program_of(module))
    for (const ImportedCall& call : program->forward) add_call(call, *program, sum);
  return sum;
}

}  // namespace tandem
