#include "core/transforms/common/module_pieces.hpp"

#include <utility>

namespace tandem {

std::shared_ptr<const Module> exchange_module(const char* name, DType type, Exchange how, ExchangeAmong among,
                                              std::int64_t ranks, Shape in, Shape out) {
  auto module = std::make_shared<Module>();
  module->name = name;
  module->type = type;
  module->locals = {{"input", std::move(in)}, {"output", std::move(out)}};
  module->inputs = {0}, module->outputs = {1};
  module->exchange = how, module->among = among, module->exchange_ranks = ranks;
  return module;
}

}  // namespace tandem
