#include "core/workloads/common/gpt_tiles.hpp"

#include "core/base/check.hpp"
#include "core/formats/layout.hpp"
#include "core/graph/kernels.hpp"
#include "core/workloads/common/gpt_plan.hpp"

namespace tandem {
namespace {

using Sizes = TransformerSizes;

struct Tile {
  const Sizes& s;
  bool attends;  // else it is one of the feed-forward's
  bool first, last;
  std::int64_t tiles;
  Sizes heads;  // of a tile of attention: as if there were no others

  Tile(const Sizes& sizes, bool attention, std::int64_t index, std::int64_t count)
      : s(sizes), attends(attention), first(index == 0), last(index + 1 == count), tiles(count), heads(sizes) {
    CHECK(index < count && heads.heads % count == 0, "tiles of unequal heads", index, count, heads.heads);
    heads.heads /= count;
    heads.hidden /= count;
  }
  // Columns that the second linear map reads, and that the first one makes.
  std::int64_t inner() const { return attends ? s.hidden / tiles : s.width() / tiles; }
  std::int64_t made() const { return attends ? 3 * inner() : inner(); }
  std::int64_t row() const { return s.rows(s.hidden); }
  const char* name(const char* attention, const char* feed_forward) const { return attends ? attention : feed_forward; }
};

// Work::sizes: those of gpt bodies, then tiles, first, last.
OpSpec spec_of(const Tile& t, const std::string& body, std::vector<Kernel> kernels, std::int64_t workspace,
               bool accumulates = false) {
  std::vector<std::int64_t> sizes = gpt_work_sizes(t.s, accumulates);
  sizes.insert(sizes.end(), {t.tiles, t.first, t.last});
  return {{std::string(t.name("gpt.attention_tile.", "gpt.feed_forward_tile.")) + body, t.s.type, std::move(sizes),
           std::move(kernels)},
          workspace + library_temporaries(t.s)};
}

std::shared_ptr<const Layout> layout_of(const Tile& t) {
  LayoutBuilder layout;
  if (t.first) layout.add_norm(t.name("ln1", "ln2"), t.s.hidden);
  layout.add_linear(t.name("qkv", "up"), t.made(), t.s.hidden);
  const std::string second = t.name("projection", "down");
  layout.add(second + ".weight", {t.s.hidden, t.inner()});
  if (t.first) layout.add(second + ".bias", {t.s.hidden});
  return layout.build();
}

std::vector<TensorSpec> saved_by(const Tile& t) {
  std::vector<TensorSpec> saved;
  if (t.first) saved = {{"ln_mean", DType::F32, t.s.statistic()}, {"ln_rstd", DType::F32, t.s.statistic()}};
  saved.push_back({t.name("qkv", "up"), t.s.type, t.s.rows(t.made())});
  saved.push_back({t.name("attention", "gelu"), t.s.type, t.s.rows(t.inner())});
  if (t.attends) saved.push_back(attention_saved(t.heads));
  return saved;
}

std::vector<Kernel> inner_kernels(const Tile& t) {
  const Sizes& s = t.s;
  std::vector<Kernel> kernels;
  if (t.first) kernels = norm_forward_kernels(s);
  kernels.push_back(gemm(s.tokens(), t.made(), s.hidden, s.type));
  append(kernels, t.attends ? attention_forward_kernels(t.heads)
                            : std::vector<Kernel>{memory_kernel(2 * s.rows(t.inner()))});  // gelu
  return kernels;
}

std::vector<Kernel> forward_kernels(const Tile& t) {
  auto kernels = inner_kernels(t);
  if (!t.first) kernels.push_back(memory_kernel(2 * t.row()));  // the sum so far
  kernels.push_back(gemm(t.s.tokens(), t.s.hidden, t.inner(), t.s.type));
  if (t.first) kernels.push_back(memory_kernel(3 * t.row()));
  if (!t.first && !t.last) kernels.push_back(memory_kernel(2 * t.row()));  // the norm's output goes on
  return kernels;
}

void add_weight_gradient(std::vector<Kernel>& kernels, const Tile& t, std::int64_t outputs, std::int64_t inputs,
                         bool bias, bool accumulates) {
  kernels.push_back(gemm(outputs, inputs, t.s.tokens(), t.s.type));
  if (bias) kernels.push_back(row_kernel(t.s.tokens(), t.s.rows(outputs)));
  if (accumulates) kernels.push_back(memory_kernel(3 * outputs * inputs * size_of(t.s.type)));
}

std::vector<Kernel> backward_kernels(const Tile& t, bool accumulates) {
  const Sizes& s = t.s;
  std::vector<Kernel> kernels = {gemm(s.tokens(), t.inner(), s.hidden, s.type)};
  add_weight_gradient(kernels, t, s.hidden, t.inner(), t.first, accumulates);
  if (t.attends) {
    append(kernels, attention_backward_kernels(t.heads));
    kernels.push_back(memory_kernel(2 * s.rows(t.made())));  // joins the gradients of query, key and value
  } else {
    kernels.push_back(memory_kernel(3 * s.rows(t.inner())));  // gelu
  }
  if (!t.last) kernels.push_back(memory_kernel(2 * t.row()));  // the gradient so far of the norm's output
  kernels.push_back(gemm(s.tokens(), s.hidden, t.made(), s.type));
  add_weight_gradient(kernels, t, t.made(), s.hidden, true, accumulates);
  if (t.first) append(kernels, norm_backward_kernels(s));
  kernels.push_back(memory_kernel((t.first ? 3 : 2) * t.row()));  // the sum's gradient
  return kernels;
}

// `saves`: into given tensors, else into temporaries.
std::int64_t forward_workspace(const Tile& t, bool saves) {
  WorkspaceMeter meter;
  if (t.first) touch_norm_forward(meter, t.s);
  if (!saves) meter.take(t.s.rows(t.made()));
  if (t.attends) touch_attention(meter, t.heads, saves);
  return meter.peak();
}

std::int64_t backward_workspace(const Tile& t, bool accumulates) {
  const Sizes& s = t.s;
  WorkspaceMeter meter;
  const auto made = meter.take(s.rows(t.made()));
  const auto inner = t.attends ? meter.take(s.rows(t.inner())) : made;
  touch_gradient(meter, s, s.hidden * t.inner(), accumulates);
  if (t.first) touch_gradient(meter, s, s.hidden, accumulates);
  if (t.attends) {
    touch_attention_backward(meter, t.heads);
    meter.drop(inner);
  }
  touch_linear_gradient(meter, s, t.made(), s.hidden, accumulates);
  if (t.first) {
    meter.take(t.row());  // the norm's output's gradient
    meter.drop(made);
    meter_norm_backward(meter, s);
  }
  return meter.peak();
}

StageSpec stage_of(TrainingPlan& plan, const Tile& t) {
  StageSpec stage;
  stage.layout = layout_of(t);
  stage.elements = stage.layout->elements;
  stage.output_bytes = (t.last ? 1 : 2) * t.row();
  stage.saved = saved_by(t);
  stage.saves_input = true;
  stage.saves_output = t.first;  // the norm's output
  stage.recomputable = true;
  stage.forward = plan.add(spec_of(t, "forward", forward_kernels(t), forward_workspace(t, true)));
  stage.forward_light = plan.add(spec_of(t, "forward_light", forward_kernels(t), forward_workspace(t, false)));
  WorkspaceMeter held;
  if (t.first) held.take(t.row());
  stage.recompute = plan.add(spec_of(t, "recompute", inner_kernels(t), held.peak() + forward_workspace(t, true)));
  for (const bool accumulates : {false, true}) {
    auto& op = accumulates ? stage.backward_accumulate : stage.backward;
    op = plan.add(
        spec_of(t, "backward", backward_kernels(t, accumulates), backward_workspace(t, accumulates), accumulates));
  }
  return stage;
}

}  // namespace

std::vector<StageSpec> tiled_block_stages(TrainingPlan& plan, const TransformerSizes& s, std::int64_t tiles) {
  std::vector<StageSpec> stages;
  for (const bool attention : {true, false}) {
    for (std::int64_t i = 0; i < tiles; ++i) {
      const Tile tile(s, attention, i, tiles);
      const bool as_before = i > 1 && !tile.last;  // tiles between the first and the last share their works
      stages.push_back(as_before ? stages.back() : stage_of(plan, tile));
      stages.back().name = tile.name("_attention", "_feed_forward") + std::to_string(i);
    }
  }
  return stages;
}

}  // namespace tandem
