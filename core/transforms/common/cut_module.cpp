#include "core/transforms/common/cut_module.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

class Cutter {
 public:
  Cutter(const Module& module, const ModuleCut& cut) : module_(module), cut_(cut), shapes_(module.locals.size()) {
    CHECK(cut.calls.size() == module.program.size() && cut.ports.size() == module.inputs.size(), module.name);
  }

  SplitModule build() {
    out_.weights.resize(module_.weights.size());
    out_.divided.assign(module_.weights.size(), false);
    for (std::size_t p = 0; p < module_.inputs.size(); ++p) {
      made_[module_.inputs[p]] = {kNone, static_cast<std::int32_t>(p)};
      shapes_[place(module_.inputs[p])] = cut_.ports[p];
    }
    std::int32_t last = 0;
    for (const CutCall& call : cut_.calls) last = std::max(last, call.segment);
    for (std::int32_t segment = 0; segment <= last; ++segment) add_segment(segment, last > 0);
    for (std::size_t o = 0; o < module_.outputs.size(); ++o)
      out_.outputs.push_back(source_of(module_.outputs[o], cut_.outputs[o]));
    return std::move(out_);
  }

 private:
  PieceSource source_of(LocalId value, bool exchanged) {
    if (!exchanged) return made_.at(value);
    const auto [found, fresh] = exchanged_.try_emplace(value);
    if (!fresh) return found->second;
    const Shape &from = shapes_[place(value)], to = cut_.sent(value, from);
    const Dealt dealt = cut_.dealt(value);
    auto piece = exchange_module("all_to_all", module_.type, Exchange::AllToAll, cut_.among, cut_.ranks,
                                 seen_from(from, dealt.before), seen_from(to, dealt.before_there));
    out_.pieces.push_back({std::move(piece), {made_.at(value)}});
    return found->second = {static_cast<std::int32_t>(out_.pieces.size()) - 1, 0};
  }

  Shape seen_from(const Shape& shape, std::int64_t before) const {
    if (before == 0) return shape;
    CHECK(shape.elements() % (before * cut_.ranks) == 0, shape.elements(), before, cut_.ranks);
    return Shape({before, cut_.ranks, shape.elements() / (before * cut_.ranks)}, shape.type);
  }

  // What a segment's calls are so far.
  struct Segment {
    ModuleBuilder builder;
    std::map<std::pair<LocalId, bool>, LocalId> locals;  // by value, and whether it was exchanged
    std::vector<PieceSource> sources;
    std::vector<std::pair<std::int32_t, bool>> weights;  // of the whole module, by own place; whether divided
    std::vector<LocalId> made;
  };

  void add_segment(std::int32_t number, bool several) {
    const std::string suffix = !several ? "" : cut_.suffixes.empty() ? "_part" : suffix_of(number);
    Segment segment{ModuleBuilder(module_.name + suffix, module_.type), {}, {}, {}, {}};
    for (std::size_t c = 0; c < module_.program.size(); ++c)
      if (cut_.calls[c].segment == number) add_call(segment, module_.program[c], cut_.calls[c]);
    if (segment.made.empty()) return;
    const auto index = static_cast<std::int32_t>(out_.pieces.size());
    std::int32_t output = 0;
    for (const LocalId value : segment.made) {
      if (!leaves(value, number)) continue;
      segment.builder.output(segment.locals.at({value, false}));
      made_[value] = {index, output++};
    }
    finish(segment, number, index);
  }

  void add_call(Segment& segment, const Call& whole, const CutCall& cut) {
    std::vector<LocalId> in;
    for (std::size_t i = 0; i < whole.in.size(); ++i) in.push_back(local(segment, whole.in[i], cut.exchanged[i]));
    segment.builder.call(whole.name, std::string(whole.what->name), std::move(in), cut.how);
    const Call& own = segment.builder.so_far().program.back();
    for (std::size_t i = 0; i < whole.out.size(); ++i) {
      segment.locals[{whole.out[i], false}] = own.out[i];
      shapes_[place(whole.out[i])] = segment.builder.shape(own.out[i]);
      segment.made.push_back(whole.out[i]);
    }
    CHECK(own.weights.size() == whole.weights.size(), whole.name);
    for (const std::int32_t weight : whole.weights) segment.weights.emplace_back(weight, cut.divides_weights);
  }

  LocalId local(Segment& segment, LocalId value, bool exchanged) {
    const std::pair key{value, exchanged};
    if (const auto found = segment.locals.find(key); found != segment.locals.end()) return found->second;
    const Local& whole = module_.locals[place(value)];
    const auto& carried = module_.carried;
    if (std::find(carried.begin(), carried.end(), value) != carried.end())
      return segment.locals[key] = segment.builder.carried(whole.name, whole.shape);
    segment.sources.push_back(source_of(value, exchanged));
    const Shape& shape = shapes_[place(value)];
    return segment.locals[key] = segment.builder.input(whole.name, exchanged ? cut_.sent(value, shape) : shape);
  }

  // Read by a later segment, or exchanged, or an output of the whole.
  bool leaves(LocalId value, std::int32_t segment) const {
    if (std::count(module_.outputs.begin(), module_.outputs.end(), value) > 0) return true;
    for (std::size_t c = 0; c < module_.program.size(); ++c)
      if (const auto& in = module_.program[c].in;
          cut_.calls[c].segment > segment && std::count(in.begin(), in.end(), value) > 0)
        return true;
    return false;
  }

  void finish(Segment& segment, std::int32_t number, std::int32_t index) {
    auto piece = std::make_shared<Module>(*segment.builder.build());
    for (std::size_t k = 0; k < segment.weights.size(); ++k) {
      const auto [weight, divided] = segment.weights[k];
      piece->weights[k].initial = module_.weights[place(weight)].initial;
      piece->weights[k].trained = module_.weights[place(weight)].trained;
      out_.weights[place(weight)] = {index, static_cast<std::int32_t>(k)};
      out_.divided[place(weight)] = divided;
    }
    piece->may_run_on_cpu = module_.may_run_on_cpu;
    const auto& among = cut_.gradients_among;
    if (std::count(among.begin(), among.end(), number) > 0) {
      piece->among = cut_.among;
      piece->exchange_ranks = cut_.ranks;
    }
    out_.pieces.push_back({std::move(piece), std::move(segment.sources), suffix_of(number)});
  }
  std::string suffix_of(std::int32_t segment) const {
    return cut_.suffixes.empty() ? "" : cut_.suffixes.at(place(segment));
  }

  const Module& module_;
  const ModuleCut& cut_;
  std::vector<Shape> shapes_;  // of values as the rank that makes them has them
  std::map<LocalId, PieceSource> made_, exchanged_;
  SplitModule out_;
};

}  // namespace

SplitModule cut_module(const Module& module, const ModuleCut& cut) { return Cutter(module, cut).build(); }

}  // namespace tandem
