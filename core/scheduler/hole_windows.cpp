#include "core/scheduler/hole_windows.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Of a window that the memory does not hold; adding bytes to it leaves it out of reach.
constexpr std::int64_t kNoWindow = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t kOutOfReach = kNoWindow / 2;

}  // namespace

HoleWindows::HoleWindows(std::int64_t bytes, std::int64_t capacity) : bytes_(bytes), capacity_(capacity), nodes_(1) {
  nodes_[0].cost = nodes_[0].least = {kNoWindow, {kNoWindow, kNoWindow}};
  nodes_[0].least_moved = {kNoWindow, kNoWindow};
  root_ = make_node(-1, 0, false);
}

HoleWindows::Index HoleWindows::make_node(std::int64_t offset, std::int64_t bytes, bool pinned) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<Index>(nodes_.size()));
    nodes_.emplace_back();
  }
  const Index i = unused_.back();
  unused_.pop_back();
  Node& node = at(i) = {};
  node.offset = offset;
  node.bytes = bytes;
  node.pinned = pinned ? 1 : 0;
  random_ ^= random_ << 13, random_ ^= random_ >> 17, random_ ^= random_ << 5;  // xorshift (Marsaglia 2003)
  node.priority = random_;
  const std::int64_t begin = node.end();
  if (begin + bytes_ > capacity_) {
    node.cost = {kNoWindow, {kNoWindow, begin}};
  } else {
    const Sum first = before(begin), last = before(begin + bytes_);
    node.cost = {last.pinned - first.pinned, {last.bytes - first.bytes, begin}};
  }
  pull(i);
  return i;
}

void HoleWindows::shift(Index i, Sum by) {
  if (i == 0) return;
  Node& node = at(i);
  node.cost.pinned += by.pinned;
  node.cost.window.moved_bytes += by.bytes;
  node.least.pinned += by.pinned;
  node.least.window.moved_bytes += by.bytes;
  node.least_moved.moved_bytes += by.bytes;
  node.add_pinned += by.pinned;
  node.add_bytes += by.bytes;
}

void HoleWindows::push(Index i) {
  ++steps_;
  Node& node = at(i);
  const Sum by{std::exchange(node.add_pinned, 0), std::exchange(node.add_bytes, 0)};
  if (by.pinned == 0 && by.bytes == 0) return;
  shift(node.left, by);
  shift(node.right, by);
}

void HoleWindows::pull(Index i) {
  Node& node = at(i);
  const Node &left = at(node.left), &right = at(node.right);
  node.least = std::min({node.cost, left.least, right.least});
  node.least_moved = std::min({node.cost.window, left.least_moved, right.least_moved});
  node.all_pinned = node.pinned + left.all_pinned + right.all_pinned;
  node.all_bytes = node.bytes + left.all_bytes + right.all_bytes;
}

std::pair<HoleWindows::Index, HoleWindows::Index> HoleWindows::split_blocks(Index i, std::int64_t offset) {
  if (i == 0) return {0, 0};
  push(i);
  if (at(i).offset < offset) {
    const auto [left, right] = split_blocks(at(i).right, offset);
    at(i).right = left;
    pull(i);
    return {i, right};
  }
  const auto [left, right] = split_blocks(at(i).left, offset);
  at(i).left = right;
  pull(i);
  return {left, i};
}

std::pair<HoleWindows::Index, HoleWindows::Index> HoleWindows::split_windows(Index i, std::int64_t begin) {
  if (i == 0) return {0, 0};
  push(i);
  if (at(i).end() < begin) {
    const auto [left, right] = split_windows(at(i).right, begin);
    at(i).right = left;
    pull(i);
    return {i, right};
  }
  const auto [left, right] = split_windows(at(i).left, begin);
  at(i).left = right;
  pull(i);
  return {left, i};
}

HoleWindows::Index HoleWindows::merge(Index a, Index b) {
  if (a == 0 || b == 0) return a + b;
  if (at(a).priority > at(b).priority) {
    push(a);
    at(a).right = merge(at(a).right, b);
    pull(a);
    return a;
  }
  push(b);
  at(b).left = merge(a, at(b).left);
  pull(b);
  return b;
}

// Of the blocks that begin before the offset.
HoleWindows::Sum HoleWindows::before(std::int64_t offset) {
  Sum sum;
  for (Index i = root_; i != 0;) {
    ++steps_;
    const Node& node = at(i);
    if (node.offset >= offset) {
      i = node.left;
      continue;
    }
    sum.pinned += node.pinned + at(node.left).all_pinned;
    sum.bytes += node.bytes + at(node.left).all_bytes;
    i = node.right;
  }
  return sum;
}

// To those that reach the offset.
void HoleWindows::add_to_windows(std::int64_t offset, Sum by) {
  const auto [low, rest] = split_windows(root_, offset - bytes_ + 1);
  const auto [reaching, high] = split_windows(rest, offset + 1);
  shift(reaching, by);
  root_ = merge(merge(low, reaching), high);
}

void HoleWindows::add(std::int64_t offset, std::int64_t bytes, bool pinned) {
  add_to_windows(offset, {pinned ? 1 : 0, bytes});
  const Index node = make_node(offset, bytes, pinned);
  const auto [low, high] = split_blocks(root_, offset);
  root_ = merge(merge(low, node), high);
}

void HoleWindows::remove(std::int64_t offset) {
  const auto [low, rest] = split_blocks(root_, offset);
  const auto [node, high] = split_blocks(rest, offset + 1);
  CHECK(node != 0 && at(node).left == 0 && at(node).right == 0, offset);
  root_ = merge(low, high);
  unused_.push_back(node);
  add_to_windows(offset, {-at(node).pinned, -at(node).bytes});
}

// Best first: a subtree is opened when its cheapest window is the next.
std::vector<HoleWindows::Window> HoleWindows::cheapest(std::size_t most, bool pinned_too) {
  struct Item {
    Cost cost;
    Index node = 0;
    bool subtree = false;
    bool operator>(const Item& other) const { return cost > other.cost; }
  };
  const auto cost = [&](const Cost& c) { return pinned_too ? Cost{0, c.window} : c; };
  const auto subtree = [&](Index i) { return Item{pinned_too ? Cost{0, at(i).least_moved} : at(i).least, i, true}; };
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  open.push(subtree(root_));
  std::vector<Window> found;
  while (!open.empty() && found.size() < most) {
    const Item item = open.top();
    open.pop();
    if (item.cost.window.moved_bytes >= kOutOfReach || item.cost.pinned > 0) break;
    if (!item.subtree) {
      found.push_back(item.cost.window);
      continue;
    }
    push(item.node);
    const Node& node = at(item.node);
    open.push({cost(node.cost), item.node, false});
    if (node.left != 0) open.push(subtree(node.left));
    if (node.right != 0) open.push(subtree(node.right));
  }
  return found;
}

}  // namespace tandem
