// Builds trees from the events of yaml-cpp's parser, in one pass.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "core/base/check.hpp"
#include "core/yaml/findings.hpp"
#include "core/yaml/text_check.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {
namespace {

constexpr std::string_view kYamlKey = "yaml";  // the key in messages about the text as such

// Builds the tree from the parser's events. A map's key and value arrive as two nodes in turn.
class TreeBuilder final : public YAML::EventHandler {
 public:
  // Keys given twice are added to `findings`, or thrown where there are none.
  TreeBuilder(std::shared_ptr<const std::string> file, bool has_lines, Findings* findings)
      : file_(std::move(file)), has_lines_(has_lines), findings_(findings) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) reject(mark, "a second document begins here", "one document");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    begin(mark, "?", anchor, NodeKind::Null);
    end();
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    reject(mark, "aliases (*) are not read", "the value itself");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node& node = begin(mark, tag, anchor, NodeKind::Scalar);
    node.text = value;
    node.is_quoted = tag == "!";  // yaml-cpp's tag of a scalar in quotes or in a block
    if (std::any_of(value.begin(), value.end(), [](char c) { return is_control(c) && c != '\n' && c != '\t'; }))
      refuse(node.at, std::string(kYamlKey), "the text holds a control character", "printable characters");
    end();
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, NodeKind::Sequence);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, NodeKind::Map);
  }
  void OnMapEnd() override { end(); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    reject(mark, "anchors (&) are not read", "plain values");
  }

  int documents() const { return documents_; }
  Node take_root() { return std::move(root_); }
  Position position(const YAML::Mark& mark) const {
    return has_lines_ ? Position{file_, mark.line + 1, mark.column + 1} : Position{file_, 0, 0};
  }

 private:
  struct Frame {
    Node node;
    bool expects_key = true;   // Map
    bool is_repeated = false;  // Map: its key was there before
    Entry entry;               // Map: its key, once read
    std::set<std::string> keys;
  };

  [[noreturn]] void reject(const YAML::Mark& mark, const std::string& problem, const std::string& allowed) const {
    refuse(position(mark), std::string(kYamlKey), problem, allowed);
  }

  Node& begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, NodeKind kind) {
    if (anchor != 0) reject(mark, "anchors (&) are not read", "plain values");
    if (!tag.empty() && tag != "?" && tag != "!") reject(mark, "tags (!) are not read", "plain values");
    if (++nodes_ > kMostNodes) reject(mark, "more than " + std::to_string(kMostNodes) + " values", "fewer");
    if (frames_.size() >= kMostDepth)
      reject(mark, "nested deeper than " + std::to_string(kMostDepth) + " levels", "fewer levels");
    Frame frame;
    frame.node.kind = kind;
    frame.node.at = position(mark);
    frames_.push_back(std::move(frame));
    return frames_.back().node;
  }

  void end() {
    CHECK(!frames_.empty(), "the parser ends what it has not begun", nodes_);
    Node node = std::move(frames_.back().node);
    frames_.pop_back();
    if (frames_.empty()) {
      root_ = std::move(node);
    } else if (frames_.back().node.kind == NodeKind::Sequence) {
      frames_.back().node.items.push_back(std::move(node));
    } else if (frames_.back().expects_key) {
      accept_key(frames_.back(), std::move(node));
    } else {
      Frame& frame = frames_.back();
      // An empty value has no place of its own: the parser's mark is that of whatever follows.
      if (node.kind == NodeKind::Null) node.at = frame.entry.at;
      frame.entry.value = std::move(node);
      if (!frame.is_repeated) frame.node.entries.push_back(std::move(frame.entry));
      frame.entry = Entry();
      frame.expects_key = true;
    }
  }

  // Of a key given twice the first value is kept.
  void accept_key(Frame& frame, Node key) {
    if (key.kind != NodeKind::Scalar) refuse(key.at, std::string(kYamlKey), "a key is " + describe(key), "a word");
    frame.is_repeated = !frame.keys.insert(key.text).second;
    if (frame.is_repeated) {
      const Finding refusal(key.at, printable(key.text.substr(0, kMostDepth)), "the key is given twice",
                            "each key once");
      if (findings_ == nullptr) throw refusal;
      findings_->add_aside(refusal);
    }
    frame.entry.key = std::move(key.text);
    frame.entry.at = key.at;
    frame.expects_key = false;
  }

  std::shared_ptr<const std::string> file_;
  bool has_lines_;
  Findings* findings_;
  int documents_ = 0;
  int nodes_ = 0;
  std::vector<Frame> frames_;
  Node root_;
};

Node read(const std::string& text, const std::string& name, bool has_lines, const std::string& key,
          Findings* findings) {
  auto file = std::make_shared<const std::string>(name);
  const Position start{file, has_lines ? 1 : 0, 1};
  if (text.size() > kMostFileBytes)
    refuse(start, key, "larger than " + std::to_string(kMostFileBytes) + " bytes", "a smaller file");
  if (const TextFault fault = find_text_fault(text); fault.kind != nullptr)
    refuse(has_lines ? Position{file, fault.line, fault.column} : start, key, fault.kind,
           "lines of printable UTF-8 text");
  TreeBuilder builder(file, has_lines, findings);
  try {
    // The comment at the end is for yaml-cpp, which takes an open quote before a last line end for closed.
    std::istringstream in(text + (text.ends_with('\n') ? "#" : "\n#"));
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    refuse(e.mark.is_null() ? start : builder.position(e.mark), key, "not valid YAML: " + printable(e.msg),
           "maps, lists and scalars");
  }
  return builder.take_root();
}

}  // namespace

Node read_yaml(const std::string& text, const std::string& name, Findings* findings) {
  Node root = read(text, name, true, std::string(kYamlKey), findings);
  if (root.kind == NodeKind::Map) return root;
  const Position start{std::make_shared<const std::string>(name), 1, 1};
  refuse(root.at.line > 0 ? root.at : start, std::string(kYamlKey),
         root.kind == NodeKind::Null ? "the file is empty" : "the file holds " + describe(root), "a map of keys");
}

Node read_yaml_value(const std::string& text, const std::string& source, const std::string& key) {
  Node root = read(text, source, false, key, nullptr);
  root.at.file = std::make_shared<const std::string>(source);
  return root;
}

}  // namespace tandem
