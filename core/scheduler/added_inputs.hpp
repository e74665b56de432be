// An executor beside which something else speaks to the schedulers: what people ask for, what a loop has learnt. Must
// not know which world it stands before, nor what is said.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/scheduler/seam.hpp"

namespace tandem {

// What there is to say by now, each once.
using MoreInputs = std::function<std::vector<Input>()>;

class AddedInputs final : public Executor {
 public:
  // `more` is asked after each wait. Null: there is never anything to say.
  AddedInputs(Executor& world, MoreInputs more) : world_(world), more_(std::move(more)) {}
  void submit(std::span<const Command> commands) override { world_.submit(commands); }
  EventBatch wait(TimeNs deadline) override {
    EventBatch batch = world_.wait(deadline);
    if (!more_) return batch;
    for (Input& input : more_()) batch.inputs.push_back(std::move(input));
    return batch;
  }
  bool in_flight() const override { return world_.in_flight(); }

 private:
  Executor& world_;
  MoreInputs more_;
};

}  // namespace tandem
