#include "core/transforms/tensor/split_module.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/model/paged_attention_shape.hpp"
#include "core/transforms/tensor/by_tokens.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

// How the ranks have a value: all of it each; some columns each; each a summand of it; or some rows each.
enum class Held : std::uint8_t { Whole, Columns, Summand, Rows };

// Primitives that compute each column, or each head, by itself.
bool goes_by_columns(const std::string_view name) {
  static const std::set<std::string_view> kNames = {"activation", "dropout", "multiply", "scale", "softcap"};
  return kNames.contains(name);
}
bool goes_by_heads(const std::string_view name) {
  static const std::set<std::string_view> kNames = {"attention", "paged_attention", "qkv_attention", "rotary"};
  return kNames.contains(name);
}
// Layers whose outputs are columns of their own, and which sum over those of their input.
bool multiplies(const std::string_view name) { return name == "linear" || name == "expert_linear"; }
bool chooses(const Call& call) { return call.what->primitive.is_choice(); }
// Inputs of attention and others, without pages of keys and values; and without what ranks have alike before them.
std::size_t first_page_of(const Call& call) {
  if (std::string_view(call.what->name) != "paged_attention") return call.in.size();
  return PagedAttentionSizes(call.how, call.shapes).first_page();
}
std::size_t values_of(const Call& call) {
  if (std::string_view(call.what->name) != "paged_attention") return call.in.size();
  return PagedAttentionSizes(call.how, call.shapes).values();
}

class Splitter {
 public:
  Splitter(const Module& module, const TensorDivision& how, const std::vector<PortPart>& ports)
      : module_(module),
        locals_(module.locals),
        ranks_(how.ranks),
        by_tokens_(how.by_tokens),
        by_texts_(how.by_texts),
        held_(module.locals.size(), Held::Whole),
        segment_(module.locals.size(), 0) {
    for (std::size_t p = 0; p < module.inputs.size(); ++p) {
      segment_[place(module.inputs[p])] = kNone;
      if (ports[p] == PortPart::WeightPart) divided_.insert(module.inputs[p]);
      if (ports[p] == PortPart::Tokens) held_[place(module.inputs[p])] = Held::Rows;
    }
    for (const Call& call : module.program)
      for (const LocalId in : call.in) readers_[in].push_back(&call);
  }

  SplitModule build() {
    out_.weights.resize(module_.weights.size());
    out_.divided.assign(module_.weights.size(), false);
    plan();
    write();
    if (by_texts_) name_pieces();
    return std::move(out_);
  }

 private:
  // How each call is computed, and in which segment: between two of them ranks exchange.
  struct Step {
    const Call* call = nullptr;
    std::int32_t segment = 0;
    bool divides = false;      // its attributes are a rank's part
    std::vector<bool> spread;  // by input: read where each rank's gradient is a summand
    bool sums = false;         // it reads summands as they are, and makes one
    bool gathers = false;      // it reads the columns of all ranks
    bool by_texts = false;     // it reads all columns of the rank's texts
  };

  bool is_divisible(std::int64_t size) const { return size % ranks_ == 0; }

  // The columns of a linear layer's result, if all that reads them takes columns, up to a layer that sums over them.
  bool is_read_by_columns(LocalId value) const {
    if (std::count(module_.outputs.begin(), module_.outputs.end(), value) > 0) return false;
    const auto readers = readers_.find(value);
    if (readers == readers_.end()) return false;
    return std::all_of(readers->second.begin(), readers->second.end(), [&](const Call* call) {
      const std::string_view name = call->what->name;
      if (multiplies(name)) return call->in.size() == 1 && is_divisible(module_.locals[place(value)].shape.columns());
      if (name == "cross_entropy" || chooses(*call)) return call->in.front() == value;
      if (shares_one_head(*call))
        return value == call->in.front() && is_divisible(call->how.integer("heads")) &&
               is_read_by_columns(call->out.front());
      const auto values = static_cast<std::ptrdiff_t>(values_of(*call));
      if (goes_by_heads(name) && (values > 3 || !has_divisible_heads(*call))) return false;
      if (!goes_by_columns(name) && !goes_by_heads(name)) return false;
      const bool all_made_by_linear = std::all_of(call->in.begin(), call->in.begin() + values,
                                                  [&](LocalId in) { return in == value || comes_of_columns(in); });
      return all_made_by_linear && is_read_by_columns(call->out.front());
    });
  }
  bool has_divisible_heads(const Call& call) const {
    const std::int64_t heads = call.how.integer("heads"), keys = call.how.integer("key_heads", 0);
    return is_divisible(heads) && is_divisible(keys > 0 ? keys : heads) && call.how.integer("alibi", 0) == 0;
  }
  // Keys and values of one head, which all heads of queries read: each rank has them whole, and makes summands of their
  // gradients (multi-query attention: Shazeer, 2019; Chowdhery et al., 2022, section 4).
  static bool shares_one_head(const Call& call) {
    const std::string_view name = call.what->name;
    return (name == "qkv_attention" || name == "paged_attention") && values_of(call) == 3 &&
           call.how.integer("key_heads", 0) == 1 && call.how.integer("heads") > 1 && call.how.integer("alibi", 0) == 0;
  }
  // Queries, keys and values of all heads, one after another.
  bool is_read_as_thirds(LocalId value) const {
    const auto readers = readers_.find(value);
    return readers != readers_.end() &&
           std::any_of(readers->second.begin(), readers->second.end(), [](const Call* call) {
             const std::string_view name = call->what->name;
             return name == "attention" || (name == "paged_attention" && values_of(*call) == 1);
           });
  }
  // Made by a linear layer, turned or activated at most.
  bool comes_of_columns(LocalId value) const {
    for (const Call& call : module_.program) {
      if (call.out.front() != value) continue;
      const std::string_view name = call.what->name;
      if (multiplies(name)) return is_divisible(call.shapes.out.front().columns());
      return (goes_by_columns(name) || goes_by_heads(name)) && comes_of_columns(call.in.front());
    }
    return false;
  }

  // The first segment in which a value can be read as a whole, or `spread`.
  std::int32_t readable(LocalId value, bool spread, const Step& step) const {
    const std::int32_t made = segment_[place(value)];
    const Held held = held_[place(value)];
    if (step.gathers || (step.by_texts && held == Held::Columns) || of_texts_.contains(value)) return made + 1;
    if (held == Held::Summand) return step.sums ? made : made + 1;
    if (is_spread_out(value, spread)) return made + 1;
    return std::max(made, 0);
  }
  // Whether a value that is read so has to be, in a segment of its own.
  bool is_spread_out(LocalId value, bool spread) const {
    const Held held = held_[place(value)];
    return spread && (held == Held::Whole || held == Held::Rows) && !spread_.contains(value);
  }
  // Segments of tokens and of columns by turns, as gradients of the ones' weights are summands, and not the others'.
  static std::int32_t by_turns(std::int32_t segment, bool tokens) {
    return segment + (segment % 2 == (tokens ? 1 : 0));
  }

  void require_goes_by_tokens(const Call& call) const {
    require_computes_by_tokens(module_, call, ranks_);
    for (const LocalId in : call.in)
      if (held_[place(in)] == Held::Whole)
        throw ConfigError("parallel.sequence_kind: " + module_.name + "." + call.name +
                          " reads what all ranks have; allowed: no sequence_kind");
  }

  void plan() {
    for (const Call& call : module_.program) {
      Step step{&call, 0, false, std::vector<bool>(call.in.size(), false), false};
      Held held = Held::Whole;
      const std::string_view name = call.what->name;
      const Held first = call.in.empty() ? Held::Whole : held_[place(call.in.front())];
      const bool by_divided =
          std::any_of(call.in.begin(), call.in.end(), [&](LocalId in) { return divided_.contains(in); });
      if (first == Held::Columns && name == "cross_entropy") {
        step = tell_statistics(call);
      } else if (first == Held::Columns && chooses(call)) {
        step = choose_of_all(call);
      } else if (by_texts_ && name == "paged_attention" && first == Held::Columns && shares_one_head(call)) {
        step = attend_to_own_texts(call);
        held = Held::Columns;  // once it was dealt back
        of_texts_.insert(call.out.front());
      } else if (first == Held::Columns) {
        step.divides = true;
        if (shares_one_head(call)) step.spread[1] = step.spread[2] = true;
        held = multiplies(name) ? Held::Summand : name == "cross_entropy" ? Held::Whole : Held::Columns;
      } else if (name == "add" && adds_summands(call)) {
        step.sums = true;
        held = Held::Summand;
      } else if (name == "combine" && first == Held::Summand) {  // whose weights' gradients are summands, too
        step.sums = step.spread[2] = true;
        held = Held::Summand;
      } else if (name == "dispatch" && is_sent_to_divided_experts(call)) {
        step.spread[0] = true;
        spread_.insert(call.out.front());
      } else if (multiplies(name) && is_read_by_columns(call.out.front()) &&
                 (by_divided || (call.in.size() == 1 && is_divisible(call.shapes.out.front().columns())))) {
        step.divides = step.spread[0] = true;
        held = Held::Columns;
      } else if (name == "tiled_loss" && (by_divided || is_divisible(call.how.integer("outputs")))) {
        step.divides = step.spread[0] = true;
      } else if (name == "embedding" &&
                 (by_divided || (call.in.size() == 1 && is_divisible(call.how.integer("rows"))))) {
        step.divides = true;
        held = Held::Summand;
      } else if (by_divided) {
        throw ConfigError("parallel.tensor: " + module_.name + "." + call.name +
                          " reads all of a weight that another layer has divided; allowed: 1, or weights of its own");
      } else if (by_tokens_) {
        require_goes_by_tokens(call);
        held = Held::Rows;
      }
      append(std::move(step), held);
    }
  }
  bool is_sent_to_divided_experts(const Call& dispatch) const {
    const auto readers = readers_.find(dispatch.out.front());
    return !by_tokens_ && readers != readers_.end() &&
           std::all_of(readers->second.begin(), readers->second.end(), [&](const Call* call) {
             return call->what->name == "expert_linear" && is_read_by_columns(call->out.front()) &&
                    is_divisible(call->shapes.out.front().columns());
           });
  }
  bool adds_summands(const Call& call) const {
    return std::all_of(call.in.begin(), call.in.end(), [&](LocalId in) { return held_[place(in)] == Held::Summand; });
  }
  void append(Step step, Held held) {
    for (std::size_t i = 0; i < step.call->in.size(); ++i)
      step.segment = std::max(step.segment, readable(step.call->in[i], step.spread[i], step));
    if (by_tokens_) step.segment = by_turns(step.segment, held == Held::Rows);
    for (const LocalId out : step.call->out) held_[place(out)] = held, segment_[place(out)] = step.segment;
    steps_.push_back(std::move(step));
  }

  // Of logits whose columns ranks have: each tells the others what they need of it. Returns the step of the loss
  // itself.
  Step tell_statistics(const Call& loss) {
    const Shape& logits = module_.locals[place(loss.in.front())].shape;
    const auto statistics = static_cast<LocalId>(locals_.size());
    locals_.push_back({loss.name + "_statistics", Shape({2 * ranks_, logits.rows()}, DType::F32)});
    statistics_.insert(statistics);
    held_.push_back(Held::Whole), segment_.push_back(0);
    Call told{loss.name + "_statistics", find_primitive("column_statistics"), loss.how, loss.in, {statistics}, {}, {}};
    append({&own_calls_.emplace_back(std::move(told)), 0, true, std::vector<bool>(loss.in.size(), false), false},
           Held::Summand);
    Call rest{loss.name, find_primitive("statistics_loss"), {}, {statistics, loss.in[1]}, loss.out, {}, {}};
    return {&own_calls_.emplace_back(std::move(rest)), 0, false, {false, false}, false};
  }

  // A choice is one of all columns, which each rank brings together. Returns its step.
  Step choose_of_all(const Call& choice) {
    const auto all = static_cast<LocalId>(locals_.size());
    locals_.push_back({choice.name + "_columns", locals_[place(choice.in.front())].shape});
    held_.push_back(Held::Whole), segment_.push_back(0);
    Call joined{choice.name + "_columns",
                find_primitive("join_columns"),
                {{"ranks", ranks_}},
                {choice.in.front()},
                {all},
                {},
                {}};
    Step joins{&own_calls_.emplace_back(std::move(joined)), 0, false, {false}, false, /*gathers=*/true};
    append(std::move(joins), Held::Whole);
    Call rest = choice;
    rest.in = {all};
    return {&own_calls_.emplace_back(std::move(rest)), 0, false, {false}, false};
  }
  // Keys and values of one head are whole on each rank, which takes those of its texts, and all heads' queries of them.
  // Returns the step of attention.
  Step attend_to_own_texts(const Call& attention) {
    const std::int64_t texts = PagedAttentionSizes(attention.how, attention.shapes).batch;
    if (!is_divisible(texts))
      throw ConfigError("parallel.attention: " + module_.name + "." + attention.name + " is of " +
                        std::to_string(texts) + " texts, which " + std::to_string(ranks_) +
                        " ranks do not divide; allowed: heads, or a batch that they divide");
    Call own = attention;
    for (std::size_t i : {1, 2}) {
      const Local whole = locals_[place(attention.in[i])];
      const auto rows = static_cast<LocalId>(locals_.size());
      locals_.push_back({whole.name + "_own", whole.shape});
      locals_.back().shape.dims.front() /= ranks_;
      held_.push_back(Held::Whole), segment_.push_back(0);
      Call takes{whole.name + "_own",
                 find_primitive("rows"),
                 {{"count", locals_.back().shape.dims.front()}, {"ranks", ranks_}},
                 {attention.in[i]},
                 {rows},
                 {},
                 {}};
      append({&own_calls_.emplace_back(std::move(takes)), 0, false, {true}}, Held::Whole);  // as heads read them
      own.in[i] = rows;
    }
    Step step{&own_calls_.emplace_back(std::move(own)), 0, false, std::vector<bool>(attention.in.size(), false)};
    step.by_texts = true;
    return step;
  }
  // Of a value with some columns of all texts, all columns of some; or the other way.
  PieceSource dealt(LocalId value, bool to_texts) {
    if (const auto found = exchanged_.find({value, Exchange::AllToAll}); found != exchanged_.end())
      return found->second;
    const Shape& whole = locals_[place(value)].shape;
    const std::int64_t rows = whole.rows() / ranks_, columns = whole.columns() / ranks_;
    Shape by_columns({1, ranks_, rows * columns}, whole.type), by_texts({rows, ranks_, columns}, whole.type);
    auto made = exchange_module("all_to_all", module_.type, Exchange::AllToAll, ExchangeAmong::Tensor, ranks_,
                                to_texts ? by_columns : by_texts, to_texts ? by_texts : by_columns);
    out_.pieces.push_back({std::move(made), {whole_.at(value)}});
    return exchanged_[{value, Exchange::AllToAll}] = {static_cast<std::int32_t>(out_.pieces.size()) - 1, 0};
  }
  PieceSource gathered_columns(LocalId value) {
    if (const auto found = exchanged_.find({value, Exchange::Gather}); found != exchanged_.end()) return found->second;
    Shape own = locals_[place(value)].shape;
    own.dims.back() /= ranks_;
    Shape all = own;
    all.dims.front() *= ranks_;
    auto made = exchange_module(name_of(Exchange::Gather), module_.type, Exchange::Gather, ExchangeAmong::Tensor,
                                ranks_, std::move(own), std::move(all));
    out_.pieces.push_back({std::move(made), {whole_.at(value)}});
    return exchanged_[{value, Exchange::Gather}] = {static_cast<std::int32_t>(out_.pieces.size()) - 1, 0};
  }

  static const char* name_of(Exchange how) {
    if (how == Exchange::Gather) return "gather";
    if (how == Exchange::Scatter) return "scatter";
    return how == Exchange::Forward ? "reduce" : "spread";
  }
  Shape rows_of(LocalId value) const {
    Shape shape = locals_[place(value)].shape;
    require_divides(shape.dims.front(), ranks_, "parallel.sequence_kind: " + module_.name);
    shape.dims.front() /= ranks_;
    return shape;
  }
  // Values that ranks exchange, in the order in which they are wanted.
  PieceSource exchanged(LocalId value, Exchange how) {
    if (const auto found = exchanged_.find({value, how}); found != exchanged_.end()) return found->second;
    const Shape& whole = locals_[place(value)].shape;
    const PieceSource source = how == Exchange::Gather ? source_of(value, /*spread=*/false) : whole_.at(value);
    const char* name = statistics_.contains(value) ? kStatistics : name_of(how);
    auto made = exchange_module(name, module_.type, how, ExchangeAmong::Tensor, ranks_,
                                how == Exchange::Gather ? rows_of(value) : whole,
                                how == Exchange::Scatter ? rows_of(value) : whole);
    out_.pieces.push_back({std::move(made), {source}});
    return exchanged_[{value, how}] = {static_cast<std::int32_t>(out_.pieces.size()) - 1, 0};
  }
  // By its sum: all but what is told to all.
  bool becomes_rows(LocalId value) const {
    return by_tokens_ && held_[place(value)] == Held::Summand && !statistics_.contains(value);
  }
  bool is_in_rows(LocalId value) const { return held_[place(value)] == Held::Rows || becomes_rows(value); }
  // As a call of a segment reads it.
  PieceSource source_of(LocalId value, bool spread) {
    if (spread && is_in_rows(value)) return exchanged(value, Exchange::Gather);
    if (held_[place(value)] == Held::Summand)
      return exchanged(value, becomes_rows(value) ? Exchange::Scatter : Exchange::Forward);
    if (is_spread_out(value, spread)) return exchanged(value, Exchange::Backward);
    return whole_.at(value);
  }

  // A segment's calls as a module of their own.
  class Segment {
   public:
    Segment(Splitter& all, std::int32_t number, const std::string& name)
        : all_(all), number_(number), builder_(name, all.module_.type) {}
    void add(const Step& step) {
      const Call& call = *step.call;
      std::vector<LocalId> in;
      const std::size_t pages = first_page_of(call);
      for (std::size_t i = 0; i < pages; ++i) in.push_back(local(call.in[i], step.spread[i], step));
      for (std::size_t i = pages; i < call.in.size(); ++i) in.push_back(page(call.in[i], step));
      const LocalId first = builder_.call(call.name, std::string(call.what->name), std::move(in), attributes(step));
      const std::vector<LocalId>& out = builder_.so_far().program.back().out;
      for (std::size_t i = 0; i < call.out.size(); ++i) locals_[{call.out[i], false}] = out[i];
      CHECK(first == out.front(), call.name);
      makes_summands_ = all_.by_tokens_ && all_.held_[place(call.out.front())] == Held::Rows;
      note_weights(step);
    }
    void output(LocalId value) {
      builder_.output(locals_.at({value, false}));
      outputs_.push_back(value);
    }
    const std::vector<LocalId>& outputs() const { return outputs_; }
    bool empty() const { return builder_.so_far().program.empty(); }
    ModulePiece finish() {
      auto module = std::make_shared<Module>(*builder_.build());
      for (std::size_t k = 0; k < module->weights.size(); ++k) {
        module->weights[k].initial = whole_weights_[k]->initial;
        module->weights[k].trained = whole_weights_[k]->trained;
      }
      module->may_run_on_cpu = all_.module_.may_run_on_cpu;
      if (makes_summands_) module->exchange_ranks = all_.ranks_;
      return {std::move(module), sources_};
    }

   private:
    // Of the keys and values of the rank's heads.
    LocalId page(LocalId value, const Step& step) {
      const PagedAttentionSizes sizes(step.call->how, step.call->shapes);
      const Local& whole = all_.module_.locals[place(value)];
      const std::int64_t parts = step.divides && !shares_one_head(*step.call) ? all_.ranks_ : 1;
      const std::int64_t texts = step.by_texts ? sizes.batch / all_.ranks_ : sizes.batch;
      const Shape own =
          page_shape(whole.shape.dims.front(), texts, sizes.key_width() / parts, all_.module_.type, sizes.bits);
      const auto& carried = all_.module_.carried;
      if (std::find(carried.begin(), carried.end(), value) != carried.end()) return builder_.carried(whole.name, own);
      sources_.push_back(all_.whole_.at(value));
      return builder_.input(whole.name, own);
    }
    LocalId local(LocalId value, bool spread, const Step& step) {
      const bool elsewhere = all_.segment_[place(value)] != number_;
      const Held held = all_.held_[place(value)];
      const bool deals = (step.by_texts && held == Held::Columns) || all_.of_texts_.contains(value);
      const bool exchanged =
          step.gathers || deals || (!step.sums && held == Held::Summand) || all_.is_spread_out(value, spread);
      const std::pair key{value, exchanged};
      if (const auto found = locals_.find(key); found != locals_.end()) return found->second;
      CHECK(elsewhere || exchanged, all_.module_.name, value);
      Shape shape = all_.locals_[place(value)].shape;
      if (step.gathers) {
        sources_.push_back(all_.gathered_columns(value));
        shape.dims.front() *= all_.ranks_, shape.dims.back() /= all_.ranks_;
        return locals_[key] = builder_.input(all_.locals_[place(value)].name, shape);
      }
      if (deals) {
        sources_.push_back(all_.dealt(value, step.by_texts));
        (step.by_texts ? shape.dims.front() : shape.dims.back()) /= all_.ranks_;
        return locals_[key] = builder_.input(all_.locals_[place(value)].name, shape);
      }
      sources_.push_back(step.sums && held == Held::Summand ? all_.whole_.at(value) : all_.source_of(value, spread));
      if (all_.divided_.contains(value)) shape.dims.front() /= all_.ranks_;
      if (held == Held::Columns) shape.dims.back() /= all_.ranks_;
      if (!spread && all_.is_in_rows(value)) shape = all_.rows_of(value);
      return locals_[key] = builder_.input(all_.locals_[place(value)].name, shape);
    }
    Attributes attributes(const Step& step) const {
      Attributes how = step.call->how;
      const std::string_view name = step.call->what->name;
      if (all_.by_tokens_ && name == "positions") how = places_of_rank(*step.call, all_.ranks_);
      if (!step.divides) return how;
      const auto divide = [&](const char* key) {
        if (how.has(key) && how.integer(key) > 0) how.set(key, how.integer(key) / all_.ranks_);
      };
      if (step.spread[0]) divide("outputs");
      if (name == "embedding") divide("rows");
      if (goes_by_heads(name)) divide("heads");
      if (goes_by_heads(name) && !shares_one_head(*step.call)) divide("key_heads");
      static const std::set<std::string_view> kTold = {"column_statistics", "dropout", "embedding", "tiled_loss"};
      if (kTold.contains(name) || (name == "linear" && !step.spread[0]))
        how.set("ranks", all_.ranks_);  // tensor.cpp says which of them
      if (name == "linear" && step.spread[0] && all_.is_read_as_thirds(step.call->out.front()))
        how.set("sections", std::int64_t{3});
      // Of the last rank; none is better off.
      if (how.has("padding") && name != "column_statistics") how.set("padding", std::int64_t{0});
      return how;
    }
    void note_weights(const Step& step) {
      const Call& whole = *step.call;
      const Call& own = builder_.so_far().program.back();
      CHECK(own.weights.size() == whole.weights.size(), whole.name);
      const bool by_rows = step.divides && (step.spread[0] || whole.what->name == "embedding");
      for (std::size_t k = 0; k < own.weights.size(); ++k) {
        all_.out_.weights[place(whole.weights[k])] = {number_, own.weights[k]};
        all_.out_.divided[place(whole.weights[k])] = by_rows;
        whole_weights_.push_back(&all_.module_.weights[place(whole.weights[k])]);
      }
    }
    Splitter& all_;
    std::int32_t number_;
    ModuleBuilder builder_;
    std::map<std::pair<LocalId, bool>, LocalId> locals_;
    std::vector<PieceSource> sources_;
    std::vector<LocalId> outputs_;
    std::vector<const NamedShape*> whole_weights_;  // by own place
    bool makes_summands_ = false;                   // of its weights' gradients, of some of the tokens
  };

  // Read by a later segment, or exchanged, or an output of the whole.
  bool leaves(LocalId value, std::int32_t segment) const {
    if (std::count(module_.outputs.begin(), module_.outputs.end(), value) > 0) return true;
    return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
      return step.segment > segment && std::count(step.call->in.begin(), step.call->in.end(), value) > 0;
    });
  }

  void write() {
    for (std::size_t p = 0; p < module_.inputs.size(); ++p)
      whole_[module_.inputs[p]] = {kNone, static_cast<std::int32_t>(p)};
    std::int32_t last = 0;
    for (const Step& step : steps_) last = std::max(last, step.segment);
    std::vector<std::int32_t> piece_of(place(last) + 1);
    for (std::int32_t number = 0; number <= last; ++number) {
      Segment segment(*this, number, module_.name + (last > 0 ? "_part" : ""));
      std::vector<LocalId> made;
      for (const Step& step : steps_) {
        if (step.segment != number) continue;
        segment.add(step);
        made.insert(made.end(), step.call->out.begin(), step.call->out.end());
      }
      if (segment.empty()) continue;
      for (const LocalId value : made)
        if (leaves(value, number)) segment.output(value);
      ModulePiece piece = segment.finish();
      const auto index = static_cast<std::int32_t>(out_.pieces.size());
      piece_of[place(number)] = index;
      for (std::size_t o = 0; o < segment.outputs().size(); ++o)
        whole_[segment.outputs()[o]] = {index, static_cast<std::int32_t>(o)};
      out_.pieces.push_back(std::move(piece));
    }
    for (const LocalId output : module_.outputs) out_.outputs.push_back(source_of(output, false));
    for (PieceSource& weight : out_.weights) weight.piece = piece_of[place(weight.piece)];
  }

  // What stands around all-to-alls is one piece without them, by whose name its weights are found.
  void name_pieces() {
    std::int32_t number = -1, parts = 0;
    bool was_dealt = false;
    for (ModulePiece& piece : out_.pieces) {
      const bool is_dealt = piece.module->exchange == Exchange::AllToAll;
      parts = is_dealt || was_dealt ? parts + 1 : 0;
      number += parts == 0 ? 1 : 0;
      if (number > 0) piece.suffix = "_" + std::to_string(number);
      if (parts > 0) piece.suffix += ".part" + std::to_string(parts);
      was_dealt = is_dealt;
    }
  }

  const Module& module_;
  std::vector<Local> locals_;   // the module's, and those of own calls
  std::deque<Call> own_calls_;  // instead of the module's
  const std::int64_t ranks_;
  const bool by_tokens_, by_texts_;
  std::set<LocalId> spread_;           // whole, and each rank's gradient is a summand
  std::set<LocalId> of_texts_;         // made of the rank's texts, and dealt back to columns of all
  std::vector<Held> held_;             // by local of the whole module
  std::vector<std::int32_t> segment_;  // that makes it; kNone: a port
  std::set<LocalId> statistics_;       // own calls': two numbers of each rank and token
  std::set<LocalId> divided_;          // ports that read a part of a weight's rows
  std::map<LocalId, std::vector<const Call*>> readers_;
  std::vector<Step> steps_;
  std::map<LocalId, PieceSource> whole_;  // as it is made
  std::map<std::pair<LocalId, Exchange>, PieceSource> exchanged_;
  SplitModule out_;
};

}  // namespace

SplitModule split_module(const Module& module, const TensorDivision& how, const std::vector<PortPart>& ports) {
  CHECK(ports.size() == module.inputs.size(), ports.size(), module.inputs.size());
  return Splitter(module, how, ports).build();
}

}  // namespace tandem
