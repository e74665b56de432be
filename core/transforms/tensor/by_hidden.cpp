#include "core/transforms/tensor/by_hidden.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

// How the ranks have a value: all of it each; some columns each; or each a summand of it.
enum class Held : std::uint8_t { Whole, Columns, Summand };

// Primitives that compute each column by itself.
bool goes_by_columns(std::string_view name) {
  static const std::set<std::string_view> kNames = {"activation", "dropout", "multiply",     "scale",    "add",
                                                    "rows",       "softcap", "select_token", "positions"};
  return kNames.contains(name);
}
bool norms(std::string_view name) { return name == "layer_norm" || name == "rms_norm"; }

class HiddenSplitter {
 public:
  HiddenSplitter(const Module& module, const HiddenDivision& how, const std::vector<PortPart>& ports)
      : module_(module),
        how_(how),
        locals_(module.locals),
        held_(locals_.size(), Held::Whole),
        segment_(locals_.size(), 0) {
    for (std::size_t p = 0; p < module.inputs.size(); ++p) {
      const LocalId port = module.inputs[p];
      made_[port] = {kNone, static_cast<std::int32_t>(p)};
      if (ports[p] == PortPart::Columns) held_[place(port)] = Held::Columns;
      if (ports[p] == PortPart::WeightPart) parts_of_weights_.insert(port);
    }
  }

  SplitModule build() {
    out_.weights.resize(module_.weights.size());
    out_.divided.assign(module_.weights.size(), false);
    if (module_.exchange != Exchange::None) return exchange_of_columns();
    for (const Call& call : module_.program) plan(call);
    std::int32_t last = 0;
    for (const Step& step : steps_) last = std::max(last, step.segment);
    for (std::int32_t number = 0; number <= last; ++number) write(number, last > 0);
    for (const LocalId output : module_.outputs) {
      out_.outputs.push_back(source_of(output));
      out_.columns.push_back(held_[place(output)] == Held::Columns);
    }
    for (std::size_t i = 1; i < out_.pieces.size(); ++i) out_.pieces[i].suffix = ".hidden" + std::to_string(i);
    return std::move(out_);
  }

 private:
  // How a call is computed, and in which segment: between two of them ranks exchange.
  struct Step {
    const Call* call = nullptr;
    std::string what;
    Attributes how;
    std::int32_t segment = 0;
    bool sums = false;             // it reads summands as they are
    bool divides_weights = false;  // the rank has a part of each
  };

  [[noreturn]] void refuse(const std::string& name, const std::string& problem, const std::string& allowed) const {
    throw ConfigError("parallel.hidden: " + module_.name + "." + name + " " + problem + "; allowed: 1" + allowed);
  }
  void require_divides(const std::string& name, std::int64_t columns) const {
    if (columns % how_.ranks == 0) return;
    refuse(name,
           "has " + std::to_string(columns) + " columns, which " + std::to_string(how_.ranks) + " ranks do not divide",
           ", or a divisor of it");
  }

  // What ranks that divide columns do with a value of which the rank has some.
  SplitModule exchange_of_columns() {
    auto own = std::make_shared<Module>(module_);
    const bool divides = held_[place(module_.inputs.front())] == Held::Columns;
    if (divides && module_.exchange != Exchange::Forward && module_.exchange != Exchange::Backward)
      refuse("input", "is sent whole from rank to rank", "");
    for (Local& local : own->locals)
      if (divides) local.shape = own_shape(local.shape);
    out_.pieces.push_back({std::move(own), {{kNone, 0}}});
    out_.outputs = {{0, 0}}, out_.columns = {divides};
    return std::move(out_);
  }

  Shape own_shape(Shape shape) const {
    shape.dims.back() /= how_.ranks;
    return shape;
  }
  bool is_part(LocalId value) const {
    return held_[place(value)] == Held::Columns || parts_of_weights_.contains(value);
  }
  bool any(const Call& call, Held held) const {
    return std::any_of(call.in.begin(), call.in.end(), [&](LocalId in) { return held_[place(in)] == held; });
  }
  bool all(const Call& call, Held held) const {
    return std::all_of(call.in.begin(), call.in.end(), [&](LocalId in) { return held_[place(in)] == held; });
  }
  bool reads_part_of_weight(const Call& call) const {
    return std::any_of(call.in.begin(), call.in.end(), [&](LocalId in) { return parts_of_weights_.contains(in); });
  }

  void plan(const Call& call) {
    Step step{&call, std::string(call.what->name), call.how};
    Held held = Held::Whole;
    if (norms(step.what) && held_[place(call.in.front())] == Held::Columns) {
      step = norm_of_all(call);
      held = Held::Columns;
    } else if (step.what == "linear" && held_[place(call.in.front())] == Held::Columns) {
      if (call.in.size() > 1 && !reads_part_of_weight(call))
        refuse(call.name, "shares a weight that is not divided", "");
      if (step.how.integer("ranks", 1) > 1) refuse(call.name, "is divided by columns that ranks sum over", "");
      step.how.set("ranks", how_.ranks), step.how.set("apart", how_.apart);
      step.divides_weights = true;
      held = Held::Summand;
    } else if (step.what == "linear" && call.in.size() == 1) {
      divide(call, "outputs", step);
      held = Held::Columns;
    } else if (step.what == "embedding" && (call.in.size() == 1 || reads_part_of_weight(call))) {
      divide(call, "columns", step);
      held = Held::Columns;
    } else if (goes_by_columns(step.what) && any(call, Held::Columns)) {
      if (step.what != "positions" && !all(call, Held::Columns))
        refuse(call.name, "reads some columns of one value, and all of another", "");
      step.divides_weights = true;
      held = Held::Columns;
    } else if (any(call, Held::Columns) || reads_part_of_weight(call)) {
      refuse(call.name, "reads all columns of what ranks would divide", "");
    } else if (step.what == "add" && all(call, Held::Summand)) {
      step.sums = true;
      held = Held::Summand;
    }
    append(std::move(step), held);
  }
  void divide(const Call& call, const char* key, Step& step) const {
    require_divides(call.name, call.how.integer(key));
    step.how.set(key, call.how.integer(key) / how_.ranks);
    if (call.how.integer("padding", 0) > 0 && step.what == "linear")
      refuse(call.name, "has outputs that are nobody's", "");
    step.divides_weights = true;
  }
  void append(Step step, Held held) {
    for (const LocalId in : step.call->in) {
      const bool summed = held_[place(in)] == Held::Summand && !step.sums;
      step.segment = std::max(step.segment, segment_[place(in)] + (summed ? 1 : 0));
    }
    for (const LocalId out : step.call->out) held_[place(out)] = held, segment_[place(out)] = step.segment;
    steps_.push_back(std::move(step));
  }
  // Each rank tells of its columns. Returns the step of the norm itself.
  Step norm_of_all(const Call& norm) {
    const std::int64_t centred = norm.what->name == "layer_norm";
    Attributes how = norm.how;
    how.set("ranks", how_.ranks), how.set("apart", how_.apart), how.set("centred", centred);
    const auto told = static_cast<LocalId>(locals_.size());
    const std::int64_t rows = locals_[place(norm.in.front())].shape.rows();
    locals_.push_back({norm.name + "_statistics", Shape({centred != 0 ? 2 * how_.ranks : 1, rows}, DType::F32)});
    held_.push_back(Held::Summand), segment_.push_back(0), statistics_.insert(told);
    Call tells{norm.name + "_statistics", find_primitive("norm_statistics"), how, norm.in, {told}, {}, {}};
    append({&own_calls_.emplace_back(std::move(tells)), "norm_statistics", how}, Held::Summand);
    Call rest = norm;
    rest.in.push_back(told);
    return {&own_calls_.emplace_back(std::move(rest)), "divided_norm", how, 0, false, /*divides_weights=*/true};
  }

  // As a call, or another module, reads it: the sum, of what each has a summand of.
  PieceSource source_of(LocalId value) {
    if (held_[place(value)] != Held::Summand) return made_.at(value);
    const auto [found, fresh] = exchanged_.try_emplace(value);
    if (!fresh) return found->second;
    const Shape& shape = locals_[place(value)].shape;
    const char* name = statistics_.contains(value) ? kStatistics : "reduce";
    auto sum = exchange_module(name, module_.type, Exchange::Forward, ExchangeAmong::Hidden, how_.ranks, shape, shape);
    out_.pieces.push_back({std::move(sum), {made_.at(value)}});
    return found->second = {static_cast<std::int32_t>(out_.pieces.size()) - 1, 0};
  }

  // What a segment's calls are so far.
  struct Segment {
    ModuleBuilder builder;
    std::map<std::pair<LocalId, bool>, LocalId> locals;  // by value, and whether it was summed
    std::vector<PieceSource> sources;
    std::vector<std::pair<std::int32_t, bool>> weights;  // of the whole module, by own place; whether divided
    std::vector<LocalId> made;
  };
  void write(std::int32_t number, bool several) {
    Segment segment{ModuleBuilder(module_.name + (several ? "_part" : ""), module_.type), {}, {}, {}, {}};
    for (const Step& step : steps_)
      if (step.segment == number) add(segment, step);
    if (segment.made.empty()) return;
    const auto index = static_cast<std::int32_t>(out_.pieces.size());
    std::int32_t output = 0;
    for (const LocalId value : segment.made) {
      if (!leaves(value, number)) continue;
      segment.builder.output(segment.locals.at({value, false}));
      made_[value] = {index, output++};
    }
    auto piece = std::make_shared<Module>(*segment.builder.build());
    for (std::size_t k = 0; k < segment.weights.size(); ++k) {
      const auto [weight, divided] = segment.weights[k];
      piece->weights[k].initial = module_.weights[place(weight)].initial;
      piece->weights[k].trained = module_.weights[place(weight)].trained;
      out_.weights[place(weight)] = {index, static_cast<std::int32_t>(k)};
      out_.divided[place(weight)] = divided;
    }
    piece->may_run_on_cpu = module_.may_run_on_cpu;
    out_.pieces.push_back({std::move(piece), std::move(segment.sources)});
  }
  void add(Segment& segment, const Step& step) {
    const Call& whole = *step.call;
    std::vector<LocalId> in;
    for (const LocalId value : whole.in)
      in.push_back(local(segment, value, held_[place(value)] == Held::Summand && !step.sums));
    segment.builder.call(whole.name, step.what, std::move(in), step.how);
    const Call& own = segment.builder.so_far().program.back();
    for (std::size_t i = 0; i < whole.out.size(); ++i) {
      segment.locals[{whole.out[i], false}] = own.out[i];
      segment.made.push_back(whole.out[i]);
    }
    CHECK(own.weights.size() == whole.weights.size(), whole.name);
    for (const std::int32_t weight : whole.weights) segment.weights.emplace_back(weight, step.divides_weights);
  }
  LocalId local(Segment& segment, LocalId value, bool summed) {
    const std::pair key{value, summed};
    if (const auto found = segment.locals.find(key); found != segment.locals.end()) return found->second;
    const Local& whole = locals_[place(value)];
    const Shape shape = is_part(value) ? own_shape(whole.shape) : whole.shape;
    const auto& carried = module_.carried;
    if (std::find(carried.begin(), carried.end(), value) != carried.end())
      return segment.locals[key] = segment.builder.carried(whole.name, shape);
    segment.sources.push_back(summed ? source_of(value) : made_.at(value));
    return segment.locals[key] = segment.builder.input(whole.name, shape);
  }
  // Read by a later segment, or summed, or an output of the whole.
  bool leaves(LocalId value, std::int32_t segment) const {
    if (std::count(module_.outputs.begin(), module_.outputs.end(), value) > 0) return true;
    return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
      return step.segment > segment && std::count(step.call->in.begin(), step.call->in.end(), value) > 0;
    });
  }

  const Module& module_;
  const HiddenDivision how_;
  std::vector<Local> locals_;           // the module's, and those of own calls
  std::deque<Call> own_calls_;          // instead of the module's
  std::vector<Held> held_;              // by local
  std::vector<std::int32_t> segment_;   // that makes it
  std::set<LocalId> parts_of_weights_;  // ports that read a part of a weight's columns
  std::set<LocalId> statistics_;        // what ranks tell of their columns
  std::vector<Step> steps_;
  std::map<LocalId, PieceSource> made_, exchanged_;
  SplitModule out_;
};

}  // namespace

SplitModule split_hidden(const Module& module, const HiddenDivision& how, const std::vector<PortPart>& ports) {
  CHECK(ports.size() == module.inputs.size(), ports.size(), module.inputs.size());
  return HiddenSplitter(module, how, ports).build();
}

}  // namespace tandem
