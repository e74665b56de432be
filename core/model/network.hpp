// A network: modules in forward order, and what each of their ports reads. Any directed acyclic graph; a weight that
// modules share is an edge, too. Must not know steps, placement or LibTorch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/module.hpp"

namespace tandem {

// What a port reads: an output of an earlier module, a tensor of the batch, or a weight of an earlier module.
struct Source {
  enum class From : std::uint8_t { Output, Batch, Weight };
  From from = From::Output;
  std::int32_t index = 0;  // of the module, or of the batch's tensor
  std::int32_t place = 0;  // of the output, or of the weight
  bool operator==(const Source&) const = default;
};

struct NetworkModule {
  std::string name;                      // "block3"
  std::shared_ptr<const Module> module;  // modules of equal shape share it
  std::vector<Source> inputs;            // by port
  bool recomputable = false;
  bool continues = false;  // the module before, which was cut: nothing comes between them
  // What people call its weights, each in its place: "model.layers.3.mlp.up_proj.weight"; none: "block3.up.weight".
  std::vector<std::string> weight_names = {};
  std::string weight_name(std::size_t weight) const;
  // Of its weights that are frozen: bits of the codes that they are kept as; 0: as they are.
  std::int64_t frozen_bits = 0;
};

struct BatchTensor {
  std::string name;
  Shape shape;
  std::int64_t below = 0;  // of integers: they are of [0, below)
  // "image", "audio", "video": its rows are items of the modality, made of files.
  std::string media = {};
  std::int64_t rows_of_item = 1;  // a video has a row for each frame
};

struct Network {
  std::string family;  // works are named after it, and after the module's kind: "gpt.block.forward"
  DType type = DType::F32;
  std::vector<BatchTensor> batch;
  Work load;  // fills the batch's tensors
  std::vector<NetworkModule> modules;
  std::int64_t block_modules = 1;  // in a row, that make a block
};

// A value between modules, or a weight that is shared.
struct Signal {
  Source source;
  Shape shape;
};

// A module of a network: its ports are made as values are taken in.
class ModuleScope final : public ModuleBuilder {
 public:
  using ModuleBuilder::ModuleBuilder;
  LocalId in(const std::string& name, const Signal& value);
  const std::vector<Source>& sources() const { return sources_; }

 private:
  std::vector<Source> sources_;
};

class NetworkBuilder {
 public:
  NetworkBuilder(std::string family, DType type) { network_.family = std::move(family), network_.type = type; }

  DType type() const { return network_.type; }
  // A tensor of the batch; integers are of [0, below).
  Signal batch(const std::string& name, Shape shape, std::int64_t below = 0);
  // Items of a modality: see BatchTensor::media.
  Signal media(const std::string& modality, const std::string& name, Shape shape, std::int64_t rows_of_item = 1);
  // What fills the batch: "next_tokens", with the sizes that its body takes, and the bytes that it moves. By default
  // made-up data, "synthetic": normal numbers, and integers that are all as likely.
  void load(const std::string& what, DType type, std::vector<std::int64_t> sizes, std::int64_t moved_bytes);
  // `kind`: "block", which works are named after. The result is the first output.
  Signal module(const std::string& name, const std::string& kind, const std::function<void(ModuleScope&)>& program,
                bool recomputable = false);
  // Another one like the module added last, which reads `input` at its first port, and at others the same.
  Signal again(const std::string& name, const Signal& input);
  // Nothing is trained of modules that are added from now on, nor recomputed.
  void freeze() { frozen_ = true; }
  // Of the module added last.
  Signal output(std::size_t place) const;
  Signal weight(const std::string& module, const std::string& name) const;
  Network& network() { return network_; }
  Network finish();

 private:
  void load_made_up();
  std::shared_ptr<const Module> shared(std::shared_ptr<const Module> module);

  std::vector<std::shared_ptr<const Module>> shapes_;  // one of each
  bool frozen_ = false;
  Network network_;
};

// "block3".
inline std::string indexed(const std::string& name, std::int64_t index) { return name + std::to_string(index); }

}  // namespace tandem
