#include "core/transforms/pipeline/message_driven.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kForward = 1, kBackward = 2;  // what they take

struct Message {
  std::int64_t arrives = 0;
  bool backward = false;
  std::int32_t micro_batch = 0;
  bool operator<(const Message& o) const {
    return std::tuple(arrives, !backward, micro_batch) < std::tuple(o.arrives, !o.backward, o.micro_batch);
  }
};

struct Stage {
  std::set<Message> waiting;  // the first is taken next
  std::int64_t free = 0;      // from when on
  std::vector<StageTurn> turns;
  std::int64_t begins() const { return std::max(free, waiting.begin()->arrives); }
};

class Pipeline {
 public:
  explicit Pipeline(const PipelineShape& shape) : shape_(shape), stages_(static_cast<std::size_t>(shape.stages)) {
    while (next_ < std::min(shape.stages, shape.micro_batches)) stages_.front().waiting.insert({0, false, next_++});
  }

  std::vector<StageTurn> turns_of(std::int32_t stage) {
    while (Stage* next = soonest()) take(*next);
    return stages_.at(static_cast<std::size_t>(stage)).turns;
  }

 private:
  // No message that arrives later can come before the one that this stage takes. Null: all is done.
  Stage* soonest() {
    Stage* next = nullptr;
    for (Stage& stage : stages_)
      if (!stage.waiting.empty() && (next == nullptr || stage.begins() < next->begins())) next = &stage;
    return next;
  }
  void take(Stage& stage) {
    stage.free = stage.begins();
    const Message message = *stage.waiting.begin();
    stage.waiting.erase(stage.waiting.begin());
    if (message.backward)
      backward(stage, message.micro_batch);
    else
      forward(stage, message.micro_batch);
  }
  void forward(Stage& stage, std::int32_t micro_batch) {
    stage.turns.push_back({false, 0, micro_batch});
    stage.free += kForward;
    if (&stage == &stages_.back())
      backward(stage, micro_batch);
    else
      (&stage + 1)->waiting.insert({stage.free, false, micro_batch});
  }
  void backward(Stage& stage, std::int32_t micro_batch) {
    stage.turns.push_back({true, 0, micro_batch});
    stage.free += kBackward;
    if (&stage != &stages_.front())
      (&stage - 1)->waiting.insert({stage.free, true, micro_batch});
    else if (next_ < shape_.micro_batches)
      forward(stage, next_++);
  }

  PipelineShape shape_;
  std::vector<Stage> stages_;
  std::int32_t next_ = 0;  // micro-batch that has not begun
};

}  // namespace

std::vector<StageTurn> message_driven(const PipelineShape& shape, std::int32_t stage) {
  CHECK(shape.chunks == 1 && shape.stages > 1, shape.chunks, shape.stages);
  return Pipeline(shape).turns_of(stage);
}

}  // namespace tandem
