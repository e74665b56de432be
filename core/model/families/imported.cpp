// A module of PyTorch's that `tandem import` wrote as a folder: a network of what is read there (core/model/imported).
#include "core/model/families/common/family.hpp"
#include "core/model/imported/network.hpp"
#include "core/scenario/dirs.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    {path_key("path", "A folder that `tandem import` wrote."), word_key("precision", {"fp32"}, "fp32.")},
    recomputing_keys(),
    {},
    {{"path", "tests/data/imported/small"}}};

Network imported(const WorkloadOptions& w) {
  require_option(w.precision == DType::F32, "precision", "an imported module trains as it was imported",
                 "allowed: fp32");
  return read_import(beside_or_installed(w.keys.text("path")), w.batch).network;
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(imported, imported, kKeys, "A module of PyTorch's, brought in by `tandem import`")
