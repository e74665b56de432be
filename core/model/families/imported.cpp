// A module of PyTorch's that `tandem import` wrote as a folder: a network of what is read there (core/model/imported).
#include "core/model/families/common/family.hpp"
#include "core/model/imported/network.hpp"
#include "core/scenario/dirs.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    {path_key("path", "A folder that `tandem import` wrote."),
     word_key("precision", {"fp32", "bf16", "fp16"}, "What its parameters were when it was imported."),
     size_key("sequence", {0, kMostSize}, 0,
              "Length of a sample, after an import with --dynamic sequence; 0: as it was imported.")},
    recomputing_keys(),
    {},
    {{"path", "tests/data/imported/small"}}};

Network imported(const WorkloadOptions& w) {
  Network network =
      read_import(beside_or_installed(w.keys.text("path")), {w.batch, w.keys.integer("sequence")}).network;
  const std::string imported_as(name_of(network.type));
  require_option(w.precision == network.type, "precision", "the module was imported in " + imported_as,
                 "allowed: " + imported_as);
  return network;
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(imported, imported, kKeys, "A module of PyTorch's, brought in by `tandem import`")
